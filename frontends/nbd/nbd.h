// Façade of frontends/nbd: an NBD server whose disks are swap areas.
//
// Protocol: fixed newstyle (the NBD project's proto.md). One io_uring a worker thread, connections
// spread over the workers; each request is decoded, compressed and answered on the worker that read
// it. All buffers are allocated at start and bounded.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/base.h"
#include "frontends/vm/vm.h"

namespace tuck::nbd {

// One disk. The area is not owned and outlives the server.
struct Export {
  std::string name;         // at most 4096 bytes, UTF-8; "" is the default export
  std::string description;  // shown by LIST
  vm::SwapArea* area = nullptr;
  bool read_only = false;
};

// Where to listen: exactly one of the three.
struct ListenAddress {
  std::string unix_path;  // a stale socket file of a dead server is replaced; mode 0600
  std::string tcp_host;   // see check_tcp_host()
  uint16_t tcp_port = 10809;
  // A listening socket handed over by a service manager, Unix or loopback; owned from then on.
  int inherited_fd = -1;
};

// What is wrong with a host to listen on. Only loopback addresses (and the word localhost) are
// right until there is TLS: whoever can reach the port can read and write the disks.
Status check_tcp_host(const std::string& host);

inline constexpr unsigned kWorkersMax = 64;
inline constexpr unsigned kConnectionsMax = 4096;

struct ServerOptions {
  std::vector<Export> exports;  // at least one; names differ. The first is the default ("") as well
  std::vector<ListenAddress> listen;
  unsigned workers = 0;  // 0: one a core, at most 4
  unsigned connections_max = 128;
  std::chrono::milliseconds negotiation_time_max{10'000};
  // How long a worker polls before it sleeps; 0: it sleeps at once.
  std::chrono::microseconds poll_time{0};
  // Called once by start(), when everything is allocated, all threads run and the sockets are
  // bound, before the first client is accepted. Its error ends start().
  std::function<Status()> ready;
};

struct OperationReport {
  std::string name;  // read, write, trim, write_zeroes, flush, cache, block_status
  uint64_t requests = 0;
  uint64_t errors = 0;
  uint64_t bytes = 0;            // of those that succeeded
  HistogramSnapshot latency_ns;  // from the request read in full to its reply queued
};

struct ServerReport {
  uint64_t connections_now = 0;
  uint64_t connections_serving = 0;  // of those, past negotiation: they use an export
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;  // over connections_max
  uint64_t negotiations_failed = 0;  // timed out, or closed for what the client sent
  // Closed in transmission: what the client sent, replies that it did not take, I/O errors.
  uint64_t connections_broken = 0;
  uint64_t requests_pending = 0;  // had to wait for room
  std::vector<OperationReport> operations;
};

class Server {
 public:
  // Binds, allocates everything, starts the workers, and serves. Errors: what was wrong with the
  // options, an address in use, io_uring not to be had, no memory.
  static Result<std::unique_ptr<Server>, Error> start(ServerOptions options);
  // Serves one client on two descriptors (which may be one and the same; a socket, a pipe, a tty)
  // in the calling thread and returns when it is done; both are closed. Listens to nothing.
  static Status serve_one(ServerOptions options, int input_fd, int output_fd);

  // Stops accepting, lets requests that have been read finish, closes, joins. Called once.
  void stop() noexcept;
  ~Server();

  // Where it listens, as URIs that NBD clients take.
  std::vector<std::string> uris() const;
  ServerReport report() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tuck::nbd

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

// How much a client may say before transmission. Above any of them the connection is closed.
struct NegotiationLimits {
  uint32_t options_max = 64;
  uint32_t option_bytes_max = 128u << 10;  // the data of one option
  uint64_t bytes_max = 1u << 20;           // everything
};

// Who may connect to a Unix socket, by the credentials of its process (SO_PEERCRED). The socket
// that the server makes is for its own user alone (mode 0600), but one that was inherited, or whose
// mode somebody has changed, may be open to more. root and the server's own user always may.
struct PeerPolicy {
  std::vector<uint32_t> users;  // these as well
  bool any_user = false;        // no questions asked
};

// How long a client in transmission may leave something half done; 0: for ever, which is the
// default of both. A connection that is idle between two requests has no limit at all, or an idle
// swap device would be lost; so a client that means ill can hold its place in any case, and these
// limits take nothing more away from it: what a stalled client has is its own block of memory and
// nothing of the others. What they could do is harm: a kernel that was about to send the rest of a
// request, and was stopped by the very lack of memory that made it swap, would lose its pages. They
// are for servers that have to notice peers which are gone without a word.
struct StallLimits {
  std::chrono::milliseconds request{0};  // inside a request, without one more byte of it
  std::chrono::milliseconds reply{0};    // replies wait, and it takes none of their bytes
};

struct ServerOptions {
  std::vector<Export> exports;  // at least one; names differ. The first is the default ("") as well
  std::vector<ListenAddress> listen;
  unsigned workers = 0;  // 0: one a core, at most 4
  unsigned connections_max = 128;
  // What clients in transmission may have in the server's buffers, all together: requests that have
  // come and are not worked yet, and replies that are not sent. Each such client has a block of its
  // own (in_flight_bytes_a_client()); one for whom none is left is told so when it says GO. 0: as
  // many blocks as connections_max. The kernel's socket buffers come on top: up to 1 MiB of replies
  // for a client that does not take them.
  uint64_t in_flight_bytes_max = 0;
  // The buffers of clients that are gone stay resident, and no serving thread calls the system to
  // give them back: for a process that locks its memory.
  bool keep_buffers = false;
  std::chrono::milliseconds negotiation_time_max{10'000};
  NegotiationLimits negotiation;
  StallLimits stall;
  PeerPolicy peers;
  // How long a worker polls before it sleeps; 0: it sleeps at once.
  std::chrono::microseconds poll_time{0};
  // Called once by start(), when everything is allocated, all threads run and the sockets are
  // bound, before the first client is accepted. Its error ends start().
  std::function<Status()> ready;
};

// The least in_flight_bytes_max: one client's block.
uint64_t in_flight_bytes_a_client() noexcept;

struct OperationReport {
  std::string name;  // read, write, trim, write_zeroes, flush, cache, block_status
  uint64_t requests = 0;
  uint64_t errors = 0;
  uint64_t bytes = 0;            // of those that succeeded
  HistogramSnapshot latency_ns;  // from the request read in full to its reply queued
};

struct ServerReport {
  // False: there was no memory for `operations`, which is empty.
  bool complete = true;
  uint64_t connections_now = 0;  // those that are gone have no call under way, and it is seen
  uint64_t connections_max = 0;
  uint64_t connections_serving = 0;  // of those, past negotiation: they use an export
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;       // over connections_max
  uint64_t peers_refused = 0;             // by PeerPolicy
  uint64_t entries_refused = 0;           // GO, or EXPORT_NAME, with in_flight_bytes_max reached
  uint64_t negotiations_failed = 0;       // timed out, or closed for what the client sent
  uint64_t negotiations_timed_out = 0;    // of these: took longer than negotiation_time_max
  uint64_t negotiations_over_limits = 0;  // of these: said more than NegotiationLimits
  // Closed in transmission: what the client sent, replies that it did not take, I/O errors.
  uint64_t connections_broken = 0;
  uint64_t stalled_requests = 0;  // of these: StallLimits::request
  uint64_t stalled_replies = 0;   // of these: StallLimits::reply
  uint64_t in_flight_bytes = 0;   // the blocks of the clients that are in transmission now
  uint64_t in_flight_bytes_max = 0;
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
  const std::vector<std::string>& uris() const noexcept;
  ServerReport report() const noexcept;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tuck::nbd

// Two kinds of client: libnbd, which is another project's idea of the protocol, and a bare socket
// for what libnbd would not send.
#pragma once

#include <libnbd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/vm/vm.h"

namespace tuck::test {

using Bytes = std::vector<std::byte>;

struct ClientOptions {
  bool structured = true;
  bool strict = true;  // false: libnbd sends what the server did not offer
};

class Client {
 public:
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(Client&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Client& operator=(Client&&) = delete;

  // Each returns 0 or an errno.
  int connect(const std::string& uri);
  int read(uint64_t offset, std::span<std::byte> out, uint32_t flags = 0);
  int write(uint64_t offset, std::span<const std::byte> data, uint32_t flags = 0);
  int trim(uint64_t offset, uint64_t bytes);
  int zero(uint64_t offset, uint64_t bytes, uint32_t flags = 0);
  int flush();
  int cache(uint64_t offset, uint64_t bytes);
  // As the client library hands them out: kinds by their flags, 0 … 3.
  struct Extent {
    uint64_t bytes = 0;
    uint32_t flags = 0;
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  int status(uint64_t offset, uint64_t bytes, std::vector<Extent>* extents, uint32_t flags = 0);

  // Read, or the empty vector with a failure of the test.
  Bytes must_read(uint64_t offset, size_t bytes, uint32_t flags = 0);
  nbd_handle* handle() { return handle_; }

 private:
  static int result(int returned);
  nbd_handle* handle_;
};

class RawClient {
 public:
  // Connected, or the process ends.
  explicit RawClient(const std::string& socket_path);
  // Owns the descriptor.
  explicit RawClient(int fd) : fd_(fd) {}
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False: the server has gone.
  bool send(std::string_view bytes);
  // As much as goes without waiting for the server, for a moment at least: the bytes.
  size_t send_some(std::string_view bytes);
  // Exactly so many bytes; fewer only at the end of the stream.
  std::string receive(size_t bytes);
  // The server sends no more (whatever it sent before is thrown away).
  bool closed_by_server();
  // The same, and nothing was on its way either.
  bool closed_without_a_word();
  void hang_up();
  void send_no_more();
  // Says hello and GO for the default export; simple replies. False: it did not work.
  bool go();

 private:
  int fd_;
};

// A socket that is connected to this path, or -1.
int connected(const std::string& socket_path);

// What begins every session that goes as far as transmission.
std::string hello_and_go();
std::string request(uint16_t command, uint64_t cookie, uint64_t offset, uint32_t length,
                    uint16_t flags = 0);
std::string simple_reply(uint64_t cookie, uint32_t error = 0);

// Bytes that follow from the seed: some compressible, some not.
Bytes random_bytes(uint64_t seed, size_t bytes);

}  // namespace tuck::test

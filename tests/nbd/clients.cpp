#include "tests/nbd/clients.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/nbd/handshake.h"
#include "tests/support/seed.h"

namespace tuck::test {

// --- libnbd ----------------------------------------------------------------------------------

Client::Client(ClientOptions options) : handle_(nbd_create()) {
  if (handle_ == nullptr) {
    std::fprintf(stderr, "nbd_create: %s\n", nbd_get_error());
    std::exit(1);
  }
  nbd_set_request_structured_replies(handle_, options.structured);
  nbd_add_meta_context(handle_, LIBNBD_CONTEXT_BASE_ALLOCATION);
  if (!options.strict) nbd_set_strict_mode(handle_, 0);
}

Client::~Client() {
  if (handle_ == nullptr) return;
  nbd_shutdown(handle_, 0);
  nbd_close(handle_);
}

int Client::result(int returned) {
  if (returned == 0) return 0;
  return nbd_get_errno() == 0 ? EIO : nbd_get_errno();
}

int Client::connect(const std::string& uri) {
  return result(nbd_connect_uri(handle_, uri.c_str()));
}
int Client::read(uint64_t offset, std::span<std::byte> out, uint32_t flags) {
  return result(nbd_pread(handle_, out.data(), out.size(), offset, flags));
}
int Client::write(uint64_t offset, std::span<const std::byte> data, uint32_t flags) {
  return result(nbd_pwrite(handle_, data.data(), data.size(), offset, flags));
}
int Client::trim(uint64_t offset, uint64_t bytes) {
  return result(nbd_trim(handle_, bytes, offset, 0));
}
int Client::zero(uint64_t offset, uint64_t bytes, uint32_t flags) {
  return result(nbd_zero(handle_, bytes, offset, flags));
}
int Client::flush() {
  return result(nbd_flush(handle_, 0));
}
int Client::cache(uint64_t offset, uint64_t bytes) {
  return result(nbd_cache(handle_, bytes, offset, 0));
}

int Client::status(uint64_t offset, uint64_t bytes, std::vector<Extent>* extents, uint32_t flags) {
  extents->clear();
  nbd_extent_callback callback{};
  callback.user_data = extents;
  callback.callback = [](void* user_data, const char*, uint64_t, uint32_t* entries, size_t count,
                         int*) {
    auto* out = static_cast<std::vector<Extent>*>(user_data);
    for (size_t i = 0; i + 1 < count; i += 2)
      out->push_back({entries[i], entries[i + 1]});
    return 0;
  };
  return result(nbd_block_status(handle_, bytes, offset, callback, flags));
}

Bytes Client::must_read(uint64_t offset, size_t bytes, uint32_t flags) {
  Bytes out(bytes);
  const int error = read(offset, out, flags);
  EXPECT_EQ(error, 0) << "reading " << bytes << " at " << offset << ": " << nbd_get_error();
  if (error != 0) out.clear();
  return out;
}

// --- A bare socket ---------------------------------------------------------------------------

int connected(const std::string& socket_path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

RawClient::RawClient(const std::string& socket_path) : fd_(connected(socket_path)) {
  if (fd_ < 0) {
    std::perror("connect");
    std::exit(1);
  }
  // A server that says nothing where it should fails the test rather than hang it.
  const timeval patience{60, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

RawClient::~RawClient() {
  hang_up();
}

void RawClient::hang_up() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void RawClient::send_no_more() {
  shutdown(fd_, SHUT_WR);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

size_t RawClient::send_some(std::string_view bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now =
        ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now > 0) {
      sent += static_cast<size_t>(now);
      continue;
    }
    if (now < 0 && errno == EINTR) continue;
    // Full: whether it stays so shows in a moment.
    pollfd waited{fd_, POLLOUT, 0};
    if (errno != EAGAIN || poll(&waited, 1, 200) <= 0) break;
  }
  return sent;
}

std::string RawClient::receive(size_t bytes) {
  std::string out(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t got = recv(fd_, out.data() + have, bytes - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  out.resize(have);
  return out;
}

bool RawClient::closed_by_server() {
  for (;;) {
    char thrown_away[4096];
    const ssize_t got = recv(fd_, thrown_away, sizeof thrown_away, 0);
    if (got == 0) return true;
    if (got < 0 && errno != EINTR) return errno == ECONNRESET;
  }
}

bool RawClient::closed_without_a_word() {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = recv(fd_, &byte, 1, 0);
  } while (got < 0 && errno == EINTR);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

std::string hello_and_go() {
  return client_flags() + option(nbd::Option::go, info_data(""));
}

bool RawClient::go() {
  if (!send(hello_and_go())) return false;
  // Greeting, INFO_EXPORT, and the acknowledgement; with or without other INFOs before it.
  if (receive(nbd::kGreetingBytes).size() != nbd::kGreetingBytes) return false;
  for (;;) {
    const std::string header = receive(nbd::kOptionReplyHeaderBytes);
    if (header.size() != nbd::kOptionReplyHeaderBytes) return false;
    const std::byte* bytes = as_bytes(header).data();
    const size_t length = nbd::load32(bytes + 16);
    if (receive(length).size() != length) return false;
    const auto type = nbd::OptionReply{nbd::load32(bytes + 12)};
    if (type == nbd::OptionReply::ack) return true;
    if (type != nbd::OptionReply::info) return false;
  }
}

std::string request(uint16_t command, uint64_t cookie, uint64_t offset, uint32_t length,
                    uint16_t flags) {
  return be32(nbd::kRequestMagic) + be16(flags) + be16(command) + be64(cookie) + be64(offset) +
         be32(length);
}

std::string simple_reply(uint64_t cookie, uint32_t error) {
  return be32(nbd::kSimpleReplyMagic) + be32(error) + be64(cookie);
}

Bytes random_bytes(uint64_t seed, size_t bytes) {
  Random random(seed);
  Bytes out(bytes);
  // Runs of one byte, of two bits, or of anything.
  for (size_t at = 0; at < bytes;) {
    const size_t length = std::min<size_t>(bytes - at, random.between(1, 6000));
    const auto mask = static_cast<uint8_t>(random.one_in(3) ? 0xff : random.one_in(2) ? 3 : 0);
    const auto base = static_cast<uint8_t>(random.one_in(3) ? 0 : random.next());
    for (size_t i = 0; i < length; ++i, ++at) {
      out[at] = static_cast<std::byte>(base ^ (static_cast<uint8_t>(random.next() >> 32) & mask));
    }
  }
  return out;
}

}  // namespace tuck::test

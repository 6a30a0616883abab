// tuck-null-nbd SOCKET BYTES: a disk that reads as zeroes and drops what is written. It shows what
// client, kernel and protocol take where the server does nothing, the ceiling for every other one.
//
// As tuck does: one receive takes in all that has come, one send answers it, and a thread polls for
// 50 µs before it sleeps. The protocol's numbers are all that it shares with tuck's server.
//
// Bounds: 16 connections, 64 options of 64 KiB each, payloads of 32 MiB.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "frontends/nbd/protocol.h"

namespace tuck::bench {
namespace {

using namespace tuck::nbd;

constexpr int kConnectionsMax = 16;
constexpr int kOptionsMax = 64;
constexpr uint32_t kOptionBytesMax = 64u << 10;
constexpr size_t kInputBytes = 256u << 10;
constexpr size_t kRepliesMax = 128;  // in one send
constexpr auto kPoll = std::chrono::microseconds(50);
constexpr uint16_t kFlags = kFlagHasFlags | kFlagSendFlush | kFlagSendFua | kFlagSendTrim |
                            kFlagSendWriteZeroes | kFlagCanMultiConn;

// Never written: all of it is the kernel's one page of zeroes.
alignas(4096) std::byte zeroes[kPayloadBytesMax];

// --- The two directions of a connection --------------------------------------------------------

class Input {
 public:
  explicit Input(int fd) : fd_(fd), buffer_(kInputBytes) {}
  size_t size() const noexcept { return end_ - begin_; }
  const std::byte* data() const noexcept { return buffer_.data() + begin_; }
  void drop(size_t bytes) noexcept { begin_ += bytes; }

  // Whatever has come, at least a byte; false: the client is gone.
  bool receive() noexcept {
    std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
    end_ -= std::exchange(begin_, 0);
    ssize_t got = poll_for_some();
    if (got < 0) got = recv(fd_, buffer_.data() + end_, buffer_.size() - end_, 0);
    if (got <= 0) return false;
    end_ += static_cast<size_t>(got);
    return true;
  }
  // At least so many bytes, which must fit the buffer.
  bool need(size_t bytes) noexcept {
    while (size() < bytes) {
      if (!receive()) return false;
    }
    return true;
  }

 private:
  ssize_t poll_for_some() noexcept {
    const auto end = std::chrono::steady_clock::now() + kPoll;
    ssize_t got = 0;
    do {
      got = recv(fd_, buffer_.data() + end_, buffer_.size() - end_, MSG_DONTWAIT);
    } while (got < 0 && errno == EAGAIN && std::chrono::steady_clock::now() < end);
    return got;
  }

  int fd_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

// All of the pieces, which it uses up.
bool send_all(int fd, iovec* pieces, size_t count) noexcept {
  while (count > 0) {
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0) return false;
    auto left = static_cast<size_t>(sent);
    for (; count > 0 && left >= pieces->iov_len; ++pieces, --count)
      left -= pieces->iov_len;
    if (count == 0) break;
    pieces->iov_base = static_cast<std::byte*>(pieces->iov_base) + left;
    pieces->iov_len -= left;
  }
  return true;
}

bool send_bytes(int fd, std::byte* data, size_t bytes) noexcept {
  iovec piece{data, bytes};
  return send_all(fd, &piece, 1);
}

// Replies until they are sent together.
class Replies {
 public:
  explicit Replies(int fd) : fd_(fd) {}

  bool add(uint64_t cookie, WireError error, uint32_t payload = 0) noexcept {
    if (count_ == kRepliesMax && !send()) return false;
    std::byte* const header = headers_[count_++].data();
    store32(header, kSimpleReplyMagic);
    store32(header + 4, static_cast<uint32_t>(error));
    store64(header + 8, cookie);
    pieces_[pieces_used_++] = {header, kSimpleReplyBytes};
    if (payload > 0) pieces_[pieces_used_++] = {zeroes, payload};
    return true;
  }
  bool send() noexcept {
    count_ = 0;
    return send_all(fd_, pieces_.data(), std::exchange(pieces_used_, 0));
  }

 private:
  int fd_;
  std::array<std::array<std::byte, kSimpleReplyBytes>, kRepliesMax> headers_;
  std::array<iovec, 2 * kRepliesMax> pieces_;
  size_t count_ = 0;
  size_t pieces_used_ = 0;
};

// --- Handshake ---------------------------------------------------------------------------------

enum class Next : uint8_t { options, transmission, end };

class Handshake {
 public:
  Handshake(int fd, Input& input, uint64_t disk_bytes)
      : fd_(fd), input_(input), disk_bytes_(disk_bytes) {}

  // false: the client wants no disk, or does not speak NBD.
  bool run() noexcept {
    if (!greet()) return false;
    for (int i = 0; i < kOptionsMax; ++i) {
      const Next next = one_option();
      if (next != Next::options) return next == Next::transmission;
    }
    return false;
  }

 private:
  bool greet() noexcept {
    std::byte greeting[kGreetingBytes];
    store64(greeting, kGreetingMagic);
    store64(greeting + 8, kOptionMagic);
    store16(greeting + 16, kHandshakeFixedNewstyle | kHandshakeNoZeroes);
    if (!send_bytes(fd_, greeting, sizeof greeting) || !input_.need(kClientFlagsBytes))
      return false;
    const uint32_t flags = load32(input_.data());
    input_.drop(kClientFlagsBytes);
    no_zeroes_ = (flags & kClientNoZeroes) != 0;
    return (flags & ~(kClientFixedNewstyle | kClientNoZeroes)) == 0;
  }

  Next one_option() noexcept {
    if (!input_.need(kOptionHeaderBytes) || load64(input_.data()) != kOptionMagic) return Next::end;
    const uint32_t option = load32(input_.data() + 8);
    const uint32_t length = load32(input_.data() + 12);
    input_.drop(kOptionHeaderBytes);
    if (length > kOptionBytesMax || !input_.need(length)) return Next::end;
    const Next next = answer(option, length);
    input_.drop(length);
    return next;
  }

  // Its data is what input begins with.
  Next answer(uint32_t option, uint32_t length) noexcept {
    switch (Option{option}) {
      case Option::export_name:
        return send_disk_unframed() ? Next::transmission : Next::end;
      case Option::abort:
        reply(option, OptionReply::ack);
        return Next::end;
      case Option::info:
      case Option::go:
        return describe(option, length);
      default:
        return reply(option, OptionReply::error_unsupported) ? Next::options : Next::end;
    }
  }

  Next describe(uint32_t option, uint32_t length) noexcept {
    if (!is_info_request(length))
      return reply(option, OptionReply::error_invalid) ? Next::options : Next::end;
    std::byte info[12];
    store16(info, static_cast<uint16_t>(InfoType::export_));
    store64(info + 2, disk_bytes_);
    store16(info + 10, kFlags);
    if (!reply(option, OptionReply::info, info, sizeof info) || !reply(option, OptionReply::ack))
      return Next::end;
    return Option{option} == Option::go ? Next::transmission : Next::options;
  }

  // A name, whichever it is, and a list of what the client wants to know.
  bool is_info_request(uint32_t length) const noexcept {
    if (length < 6) return false;
    const uint32_t name = load32(input_.data());
    if (name > length - 6) return false;
    return load16(input_.data() + 4 + name) * 2u == length - 6 - name;
  }

  bool send_disk_unframed() noexcept {
    std::byte answer[10 + kExportNameZeroes] = {};
    store64(answer, disk_bytes_);
    store16(answer + 8, kFlags);
    return send_bytes(fd_, answer, no_zeroes_ ? 10 : sizeof answer);
  }

  bool reply(uint32_t option, OptionReply type, std::byte* data = nullptr,
             uint32_t bytes = 0) noexcept {
    std::byte header[kOptionReplyHeaderBytes];
    store64(header, kOptionReplyMagic);
    store32(header + 8, option);
    store32(header + 12, static_cast<uint32_t>(type));
    store32(header + 16, bytes);
    iovec pieces[] = {{header, sizeof header}, {data, bytes}};
    return send_all(fd_, pieces, 2);
  }

  int fd_;
  Input& input_;
  uint64_t disk_bytes_;
  bool no_zeroes_ = false;
};

// --- Transmission ------------------------------------------------------------------------------

class Transmission {
 public:
  Transmission(int fd, Input& input, uint64_t disk_bytes)
      : input_(input), replies_(fd), disk_bytes_(disk_bytes) {}

  void run() noexcept {
    do {
      while (input_.size() >= kRequestBytes) {
        if (!one_request()) return;
      }
    } while (replies_.send() && input_.receive());
  }

 private:
  bool one_request() noexcept {
    const std::byte* const request = input_.data();
    if (load32(request) != kRequestMagic) return false;
    const auto command = Command{load16(request + 6)};
    const uint64_t cookie = load64(request + 8);
    const uint64_t offset = load64(request + 16);
    const uint32_t length = load32(request + 24);
    input_.drop(kRequestBytes);
    if (command == Command::disconnect) return false;
    if (command == Command::write && !drop_payload(length)) return false;
    const bool inside = offset <= disk_bytes_ && length <= disk_bytes_ - offset;
    return answer(command, cookie, length, inside);
  }

  bool answer(Command command, uint64_t cookie, uint32_t length, bool inside) noexcept {
    switch (command) {
      case Command::read:
        if (!inside || length > kPayloadBytesMax) break;
        return replies_.add(cookie, WireError::none, length);
      case Command::write:
      case Command::write_zeroes:
        return replies_.add(cookie, inside ? WireError::none : WireError::no_space);
      case Command::flush:
        return replies_.add(cookie, WireError::none);
      case Command::trim:
        if (!inside) break;
        return replies_.add(cookie, WireError::none);
      default:
        break;
    }
    return replies_.add(cookie, WireError::invalid);
  }

  // Replies go out before it waits: a client may send the rest only when it has some.
  bool drop_payload(uint32_t length) noexcept {
    if (length > kPayloadBytesMax) return false;
    size_t left = length;
    while (left > 0) {
      if (input_.size() == 0 && (!replies_.send() || !input_.receive())) return false;
      const size_t here = std::min(left, input_.size());
      input_.drop(here);
      left -= here;
    }
    return true;
  }

  Input& input_;
  Replies replies_;
  uint64_t disk_bytes_;
};

// --- Server ------------------------------------------------------------------------------------

std::atomic<int> connections{0};

void serve(int fd, uint64_t disk_bytes) {
  {
    Input input(fd);
    if (Handshake(fd, input, disk_bytes).run()) Transmission(fd, input, disk_bytes).run();
  }
  close(fd);
  connections.fetch_sub(1, std::memory_order_relaxed);
}

void serve_in_thread(int fd, uint64_t disk_bytes) {
  if (connections.fetch_add(1, std::memory_order_relaxed) < kConnectionsMax) {
    try {
      std::thread(serve, fd, disk_bytes).detach();
      return;
    } catch (const std::system_error& error) {
      fmt::print(stderr, "tuck-null-nbd: no thread: {}\n", error.what());
    }
  }
  connections.fetch_sub(1, std::memory_order_relaxed);
  close(fd);
}

// -1: it cannot listen there.
int listen_at(std::string_view path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return -1;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, kConnectionsMax) != 0)
    return -1;
  return fd;
}

int null_nbd_main(std::string_view path, std::string_view size) {
  uint64_t disk_bytes = 0;
  const auto parsed = std::from_chars(size.data(), size.data() + size.size(), disk_bytes);
  if (parsed.ec != std::errc() || parsed.ptr != size.data() + size.size()) {
    fmt::print(stderr, "tuck-null-nbd: {} is no number of bytes\n", size);
    return 2;
  }
  const int listening = listen_at(path);
  if (listening < 0) {
    fmt::print(stderr, "tuck-null-nbd: cannot listen at {}\n", path);
    return 1;
  }
  // SIGTERM ends it; the socket is removed by whoever made its folder.
  for (;;) {
    const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) serve_in_thread(fd, disk_bytes);
  }
}

}  // namespace
}  // namespace tuck::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: tuck-null-nbd SOCKET BYTES\n", stderr);
    return 2;
  }
  return tuck::bench::null_nbd_main(argv[1], argv[2]);
}

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "frontends/nbd/nbd.h"
#include "tests/fuzz/controls.h"
#include "tests/fuzz/request_stream.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/machine.h"
#include "tests/nbd/stream_oracle.h"

namespace tuck::test {

namespace {

// The server answers in microseconds; a machine on which it takes this long is not worth waiting
// for.
constexpr int kHangMs = 60'000;
// How long a client that takes nothing tries to send.
constexpr int kDeafMs = 5;

// How the client ends.
enum class Ending : uint8_t {
  half_close,  // says that it sends no more, and takes all replies
  hang_up,     // at some place, with replies on their way
  deaf,        // sends everything, takes nothing, hangs up
};

struct Disks {
  Disk writable;
  Disk read_only;
  std::vector<nbd::Export> exports;
};

Disks& disks() {
  static Disks disks = [] {
    spdlog::set_level(spdlog::level::off);
    DiskOptions options;
    options.bytes = kFuzzDiskBytes;
    Disks made{Disk(options), Disk(options), {}};
    made.exports = {{"disk", "writable", &made.writable.area(), false},
                    {"read-only", "", &made.read_only.area(), true}};
    return made;
  }();
  return disks;
}

// What comes before the requests where those are in their short form.
std::string handshake(uint8_t variant) {
  const std::string name = (variant & 1) != 0 ? "read-only" : "disk";
  std::string text = client_flags();
  if ((variant & 2) != 0) text += option(nbd::Option::structured_reply);
  if ((variant & 6) == 6)
    text += option(nbd::Option::set_meta_context, meta_data(name, {"base:allocation"}));
  return text + ((variant & 8) != 0 ? option(nbd::Option::export_name, name)
                                    : option(nbd::Option::go, info_data(name, {3})));
}

class Client {
 public:
  Client(int fd, Ending ending, PieceSizes sizes) : fd_(fd), ending_(ending), sizes_(sizes) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }

  // The whole conversation. False: the server does not go on.
  bool talk(std::string_view text, size_t end) {
    if (ending_ == Ending::hang_up) text = text.substr(0, end);
    bool sending = true;
    for (;;) {
      if (sending && text.empty()) {
        sending = false;
        if (ending_ != Ending::half_close) return true;
        shutdown(fd_, SHUT_WR);
      }
      const bool deaf = ending_ == Ending::deaf;
      pollfd event{fd_,
                   static_cast<short>(deaf      ? POLLOUT
                                      : sending ? POLLIN | POLLOUT
                                                : POLLIN),
                   0};
      const int ready = poll(&event, 1, deaf ? kDeafMs : kHangMs);
      if (ready < 0 && errno == EINTR) continue;
      // A server that waits for a client who takes nothing is right to do so.
      if (ready <= 0) return deaf;
      if (deaf && (event.revents & (POLLHUP | POLLERR)) != 0) return true;
      if (!deaf && (event.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !listen()) return true;
      if (sending && (event.revents & POLLOUT) != 0 && !speak(text)) sending = false;
    }
  }
  const std::string& heard() const { return heard_; }

 private:
  // False: the server has closed.
  bool listen() {
    std::array<char, 65536> bytes;
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got > 0) heard_.append(bytes.data(), static_cast<size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }
  bool speak(std::string_view& text) {
    const size_t piece = std::min(text.size(), sizes_.next());
    const ssize_t sent = send(fd_, text.data(), piece, MSG_NOSIGNAL);
    if (sent > 0) text.remove_prefix(static_cast<size_t>(sent));
    return sent > 0 || errno == EAGAIN || errno == EINTR;
  }

  const int fd_;
  const Ending ending_;
  PieceSizes sizes_;
  std::string heard_;
};

// The same bytes through the machine of the handshake alone.
Outcome expected_handshake(std::string_view stream) {
  Peer peer(disks().exports);
  peer.feed(stream);
  return peer.outcome();
}

std::string judge(const Outcome& handshake, std::string_view requests, std::string_view heard,
                  bool all_heard) {
  const size_t head = nbd::kGreetingBytes + handshake.out.size();
  if (all_heard && heard.size() < head) return "the handshake's answers are cut off";
  if (heard.size() > nbd::kGreetingBytes) {
    const auto answers = heard.substr(nbd::kGreetingBytes, handshake.out.size());
    if (!std::string_view(handshake.out).starts_with(answers)) return "other answers";
  }
  const auto replies = heard.substr(std::min(head, heard.size()));
  if (!handshake.in_transmission()) return replies.empty() ? "" : "replies in the handshake";
  const nbd::Negotiated& agreed = handshake.negotiated;
  StreamOracle oracle({kFuzzDiskBytes, agreed.structured_replies, agreed.base_allocation,
                       agreed.export_->read_only});
  oracle.sent(as_bytes(requests));
  std::string wrong = oracle.received(as_bytes(replies));
  if (!wrong.empty()) return wrong;
  if (!all_heard) return {};
  if (oracle.outstanding() != 0) return "requests stay without an answer";
  Disks& all = disks();
  return oracle.judge_disk((agreed.export_->read_only ? all.read_only : all.writable).contents());
}

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "session: %s\n", what);
  std::abort();
}

}  // namespace

std::string fuzz_session(FuzzInput input) {
  const uint8_t how = take_byte(input);
  const uint8_t seed = take_byte(input);
  const uint8_t variant = take_byte(input);
  const auto ending = how % 8 == 0   ? Ending::hang_up
                      : how % 8 == 1 ? Ending::deaf
                                     : Ending::half_close;
  Disks& all = disks();
  all.writable.clear();
  std::string stream =
      (how & 0x80) != 0 ? std::string(as_text(input)) : handshake(variant) + request_stream(input);
  const Outcome shaken = expected_handshake(stream);
  const auto requests = std::span(stream).subspan(shaken.consumed);
  if (shaken.in_transmission()) StreamOracle::number_requests(std::as_writable_bytes(requests));

  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) give_up("no socket to be had");
  Status status;
  std::thread server([&] {
    nbd::ServerOptions options;
    options.exports = all.exports;
    options.negotiation_time_max = std::chrono::hours(1);
    status = nbd::Server::serve_one(std::move(options), fds[0], fds[0]);
  });
  Client client(fds[1], ending, PieceSizes(seed));
  if (!client.talk(stream, size_t{variant} * 64 + seed)) give_up("the server does not go on");
  close(fds[1]);
  server.join();
  if (status) return status->message;
  return judge(shaken, std::string_view(requests.data(), requests.size()), client.heard(),
               ending == Ending::half_close);
}

}  // namespace tuck::test

// One client on two descriptors, as `tuck serve --stdio` has it: each system call fails. All
// requests are sent at once, so what comes back without a fault is always the same, and with a
// fault it is that, or the beginning of it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "engine/engine.h"
#include "frontends/nbd/nbd.h"
#include "tests/faults/scenario.h"
#include "tests/faults/watchdog.h"
#include "tests/faults/wrapped_calls.h"
#include "tests/nbd/clients.h"

namespace tuck::test {
namespace {

constexpr uint64_t kDiskBytes = 1u << 20;

enum class Way : uint8_t { socket, pipes };

struct Subject {
  std::string_view call;
  std::vector<int> errors;
  // Whether a fault may end the connection or the start; if not, nobody notices it.
  bool harmful;
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {
      {"operator_new", {ENOMEM}, true},
      {"close", {EIO}, false},
      {"eventfd", {EMFILE}, true},
      {"fcntl", {EBADF}, false},
      {"fstat", {ENOMEM}, false},
      {"io_uring_queue_init_params", {ENOMEM}, true},
      {"io_uring_register_ring_fd", {ENOMEM}, false},
      {"io_uring_submit_and_get_events", {EAGAIN}, false},
      {"io_uring_submit_and_wait", {EAGAIN, EINTR}, false},
      {"mmap", {ENOMEM}, true},
      {"shutdown", {ENOTCONN}, false},
      {"write", {EINTR, EAGAIN}, false},
      {"recv", {ENOMEM, EINTR}, false},
      {"recv", {ECONNRESET}, true},
      {"send", {ENOMEM, EINTR}, false},
      {"send", {EPIPE}, true},
      {"uring_read", {ENOMEM, EINTR}, false},
      {"uring_read", {EIO}, true},
      {"uring_write", {ENOMEM, EINTR}, false},
      {"uring_write", {EPIPE}, true},
      {"timeout", {ENOMEM}, false},
      {"cancel", {ENOMEM}, false},
  };
  return all;
}

std::string all_requests() {
  const Bytes data = random_bytes(1, 300'000);
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  std::string out = hello_and_go();
  out += request(1, 1, 0, 100'000) + std::string(text.substr(0, 100'000));
  out += request(0, 2, 0, 50'000);
  out += request(1, 3, 250'001, 200'000) + std::string(text.substr(100'000, 200'000));
  out += request(4, 4, 0, 8192);
  out += request(3, 5, 0, 0);
  for (uint64_t i = 0; i < 8; ++i)
    out += request(0, 10 + i, i * 60'000, 60'000);
  out += request(2, 99, 0, 0);
  return out;
}

// What the client hears until the server hangs up.
class Session {
 public:
  explicit Session(Way way) {
    const Immune immune;
    if (way == Way::socket) {
      int pair[2] = {-1, -1};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
      input_ = output_ = pair[0];
      to_server_ = from_server_ = pair[1];
    } else {
      int there[2] = {-1, -1};
      int back[2] = {-1, -1};
      EXPECT_EQ(pipe(there), 0);
      EXPECT_EQ(pipe(back), 0);
      input_ = there[0];
      to_server_ = there[1];
      output_ = back[1];
      from_server_ = back[0];
    }
  }

  Status run(vm::SwapArea& area, std::string* heard) {
    std::thread sender([this] { send_all(); });
    std::thread receiver([this, heard] { receive_all(heard); });
    nbd::ServerOptions options;
    options.exports = {{"", "", &area, false}};
    Status status;
    {
      const Exposed exposed;
      status = nbd::Server::serve_one(std::move(options), input_, output_);
    }
    const Immune immune;
    receiver.join();
    if (from_server_ != to_server_) close(from_server_);
    sender.join();
    close(to_server_);
    return status;
  }

 private:
  void send_all() const {
    const Immune immune;
    const std::string bytes = all_requests();
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent =
          from_server_ == to_server_
              ? send(to_server_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL)
              : write(to_server_, bytes.data() + at, bytes.size() - at);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }
  void receive_all(std::string* heard) const {
    const Immune immune;
    char bytes[16'384];
    for (;;) {
      const ssize_t got = read(from_server_, bytes, sizeof bytes);
      if (got <= 0) return;
      heard->append(bytes, static_cast<size_t>(got));
    }
  }

  int input_ = -1;
  int output_ = -1;
  int to_server_ = -1;
  int from_server_ = -1;
};

class ServeOne : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    // The client's own writes into a pipe that nobody reads any more.
    signal(SIGPIPE, SIG_IGN);
    engine_ = std::move(*engine::Engine::create({}));
    engine::AreaOptions options;
    options.slots = kDiskBytes / kPageSize;
    area_ = std::make_unique<vm::SwapArea>(*engine_, *engine_->add_area(options), kDiskBytes);
  }

  std::string undisturbed(Way way) {
    const uint64_t threads = holdings().threads;
    std::string heard;
    EXPECT_FALSE(Session(way).run(*area_, &heard));
    EXPECT_GT(heard.size(), 8 * 60'000u);
    // A thread that was joined stays in the list of tasks for a moment: what is counted next would
    // never be so many again.
    EXPECT_TRUE(eventually([&] { return holdings().threads == threads; }));
    return heard;
  }

  bool run(const Fault& fault, bool harmful, Way way, const std::string& expected) {
    const Immune immune;
    const Holdings before = holdings();
    std::string heard;
    Session session(way);
    arm(fault);
    const Status status = session.run(*area_, &heard);
    lift();
    if (status) {
      EXPECT_TRUE(harmful) << status->message;
      EXPECT_FALSE(status->message.empty());
    }
    if (harmful && hits() != 0) {
      EXPECT_LE(heard.size(), expected.size());
      EXPECT_EQ(expected.compare(0, heard.size(), heard), 0) << "not what was to be said";
    } else {
      EXPECT_TRUE(heard == expected) << heard.size() << " bytes, not " << expected.size();
    }
    EXPECT_TRUE(eventually([&] { return holdings() == before; }))
        << "before: " << to_string(before) << "\nafter:  " << to_string(holdings());
    engine_->quiesce();
    engine_->verify();
    return hits() != 0;
  }

  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<vm::SwapArea> area_;
};

TEST_P(ServeOne, FailsAndNothingWrongIsSaid) {
  Watchdog watchdog;
  const Subject& subject = GetParam();
  for (const Way way : {Way::socket, Way::pipes}) {
    watchdog.begin("without a fault");
    const std::string expected = undisturbed(way);
    for (const int error : subject.errors) {
      Fault fault{subject.call, 1, error, false};
      for (bool struck = true; struck && !HasFailure();) {
        const std::string name = std::string(subject.call) + " number " +
                                 std::to_string(fault.nth) + ", " + std::strerror(error) +
                                 (way == Way::socket ? ", on a socket" : ", on pipes");
        SCOPED_TRACE(name);
        watchdog.begin(name);
        struck = run(fault, subject.harmful, way, expected);
        fault.nth += 1 + fault.nth / 8;
      }
    }
  }
}

std::string name_of_subject(const testing::TestParamInfo<Subject>& info) {
  return std::string(info.param.call) + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(All, ServeOne, testing::ValuesIn(subjects()), name_of_subject);

}  // namespace
}  // namespace tuck::test

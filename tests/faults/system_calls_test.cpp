// Each system call of the server and the engine fails: the first one, the second one, …, once and
// from then on, while the server starts, serves, stops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/faults/scenario.h"
#include "tests/faults/watchdog.h"
#include "tests/faults/wrapped_calls.h"
#include "tests/support/scale.h"

namespace tuck::test {
namespace {

// Gives up some time after a fault has struck, when it is one that may last: a client that gives up
// too early loses its connection, which is allowed, so the time is not part of the test.
class UntilStruck final : public Patience {
 public:
  bool gives_up() override {
    if (hits() == 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (struck_ == std::chrono::steady_clock::time_point{}) struck_ = now;
    return now - struck_ > std::chrono::milliseconds(100);
  }

 private:
  std::chrono::steady_clock::time_point struck_;
};

// What a fault may do.
enum class Harm : uint8_t {
  none,     // nobody notices
  start,    // the start fails with a message; nobody notices once it has started
  request,  // and requests are refused for want of space
  client,   // and one client is lost
};

struct Subject {
  std::string_view call;
  std::vector<int> errors;
  Harm harm;
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {
      {"accept4", {EMFILE, ENOMEM, ECONNABORTED, EINTR}, Harm::none},
      {"bind", {EADDRINUSE, ENOMEM}, Harm::start},
      {"close", {EINTR, EIO}, Harm::none},
      {"connect", {ENOMEM}, Harm::start},
      {"eventfd", {EMFILE}, Harm::start},
      {"fchmod", {EIO}, Harm::start},
      {"fcntl", {EIO}, Harm::start},
      {"fstat", {ENOMEM}, Harm::none},
      {"getrlimit", {EPERM}, Harm::start},
      {"getsockname", {ENOBUFS}, Harm::start},
      // Who a client is cannot be told.
      {"getsockopt", {ENOBUFS}, Harm::client},
      {"io_uring_queue_init_params", {ENOMEM, EMFILE}, Harm::start},
      {"io_uring_register_ring_fd", {ENOMEM}, Harm::none},
      {"io_uring_submit", {EAGAIN}, Harm::none},
      {"io_uring_submit_and_get_events", {EAGAIN, EINTR}, Harm::none},
      {"io_uring_submit_and_wait", {EAGAIN, EINTR, EBUSY}, Harm::none},
      {"listen", {EADDRINUSE}, Harm::start},
      {"lstat", {ENOMEM}, Harm::none},
      {"madvise", {ENOMEM, EAGAIN}, Harm::request},
      {"mmap", {ENOMEM}, Harm::start},
      {"munmap", {ENOMEM}, Harm::none},
      {"opendir", {EMFILE}, Harm::none},
      {"poll", {EINTR, ENOMEM}, Harm::none},
      {"pthread_setname_np", {ENOMEM}, Harm::none},
      {"setrlimit", {EPERM}, Harm::start},
      {"setsockopt", {ENOBUFS}, Harm::none},
      {"shutdown", {ENOTCONN}, Harm::none},
      {"socket", {EMFILE, ENOMEM}, Harm::start},
      {"start_thread", {EAGAIN}, Harm::start},
      {"unlink", {EACCES}, Harm::none},
      {"write", {EINTR, EAGAIN}, Harm::none},
      {"recv", {ENOMEM, EINTR, EAGAIN}, Harm::none},
      {"recv", {ECONNRESET}, Harm::client},
      {"send", {ENOMEM, EINTR, EAGAIN}, Harm::none},
      {"send", {EPIPE}, Harm::client},
      {"uring_read", {ENOMEM, EINTR}, Harm::none},
      {"uring_write", {ENOMEM}, Harm::none},
      {"timeout", {ENOMEM}, Harm::none},
      {"cancel", {ENOMEM}, Harm::none},
  };
  return all;
}

// One after the other at first; then in steps that grow, so that the runs stay few, and all of them
// in the long version.
uint64_t next(uint64_t nth, bool for_good) {
  static const bool every_one = std::getenv("TUCK_SOAK") != nullptr;
  return every_one ? nth + 1 : nth + 1 + nth / (for_good ? 2 : 4);
}

std::string name_of(const Fault& fault) {
  return std::string(fault.call) + " number " + std::to_string(fault.nth) +
         (fault.for_good ? " and all that follow: " : ": ") + std::strerror(fault.error);
}

class SystemCalls : public testing::TestWithParam<Subject> {
 protected:
  // Whether the fault struck.
  static bool run(const Fault& fault, Harm harm, bool stores_wait) {
    const Immune immune;
    const Holdings before = holdings();
    {
      Scenario scenario(stores_wait);
      arm(fault);
      if (!scenario.start()) {
        EXPECT_NE(hits(), 0u);
        EXPECT_GE(harm, Harm::start) << scenario.message();
        EXPECT_FALSE(scenario.message().empty());
        lift();
        // The same call does it now: nothing is in the way.
        EXPECT_TRUE(scenario.start()) << scenario.message();
        if (HasFailure()) return true;
      }
      serve(scenario, fault, harm);
      const bool takes_the_file_away = fault.call != "unlink" && fault.call != "lstat";
      scenario.end(takes_the_file_away);
      lift();
      EXPECT_EQ(scenario.wrong(), "");
    }
    EXPECT_TRUE(eventually([&] { return holdings() == before; }))
        << "before: " << to_string(before) << "\nafter:  " << to_string(holdings());
    return hits() != 0;
  }

 private:
  static void serve(Scenario& scenario, const Fault& fault, Harm harm) {
    const bool struck_before = hits() != 0;
    Endless endless;
    UntilStruck until_struck;
    const uint32_t lost =
        scenario.run_script(fault.for_good ? static_cast<Patience&>(until_struck) : endless);
    // One that has not struck by now may strike while the server stops. The eventfds are the one
    // way to tell its threads: stop() writes to them until it works.
    if (hits() == 0) {
      if (fault.for_good && fault.call == "write") lift();
      return;
    }
    if (!fault.for_good) {
      EXPECT_LE(lost, harm == Harm::client && !struck_before ? 1u : 0u);
    }
    lift();
    scenario.check_service(endless);
  }
};

TEST_P(SystemCalls, FailsAndAllElseGoesOn) {
  const Subject& subject = GetParam();
  Watchdog watchdog;
  for (const int error : subject.errors) {
    for (const bool for_good : {false, true}) {
      // An interruption is an error of a moment.
      if (for_good && error == EINTR) continue;
      Fault fault{subject.call, 1, error, for_good};
      uint32_t runs = 0;
      for (bool struck = true; struck && !HasFailure();) {
        SCOPED_TRACE(name_of(fault));
        watchdog.begin(name_of(fault));
        struck = run(fault, subject.harm, runs % 2 == 1);
        fault.nth = next(fault.nth, for_good);
        ++runs;
      }
      std::printf("%s: %s%s: %u runs\n", std::string(subject.call).c_str(), std::strerror(error),
                  for_good ? ", for good" : "", runs);
    }
  }
}

std::string name_of_subject(const testing::TestParamInfo<Subject>& info) {
  return std::string(info.param.call) + "_" + std::to_string(info.index);
}

TEST(SystemCallList, EveryWrappedCallIsMadeToFail) {
  for (const std::string_view call : wrapped_calls()) {
    if (call == "operator_new") continue;  // allocations_test.cpp
    const auto& all = subjects();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [call](const Subject& subject) {
      return subject.call == call;
    })) << call;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SystemCalls, testing::ValuesIn(subjects()), name_of_subject);

}  // namespace
}  // namespace tuck::test

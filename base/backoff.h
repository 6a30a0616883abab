// Waiting a moment for another thread that is about to be done, in a loop that looks again and
// again.
#pragma once

#include <sched.h>

#include <cstdint>
#include <ctime>

namespace tuck {

// Yields at first, which is enough where the other one is running or ready. Sleeps from then on: a
// yield lets only threads of its own priority run, so that a real-time thread which only yields
// keeps the thread that it waits for from the processor. Works in a signal handler.
class Backoff {
 public:
  void pause() noexcept {
    if (pauses_ < kYields) {
      ++pauses_;
      ::sched_yield();
      return;
    }
    const timespec moment{0, kSleepNs};
    ::nanosleep(&moment, nullptr);
  }

 private:
  static constexpr uint32_t kYields = 32;
  static constexpr long kSleepNs = 20'000;
  uint32_t pauses_ = 0;
};

}  // namespace tuck

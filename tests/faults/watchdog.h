// Ends the process when something hangs, with what was under way: a test that stands still says
// nothing, and is killed from outside much later.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/scale.h"

namespace tuck::test {

class Watchdog {
 public:
  // Far more than anything here takes on a loaded machine, more than eventually() waits before it
  // says what is wrong, and less than ctest allows.
  static constexpr std::chrono::seconds kPatience{100 * (kSanitized ? 2 : 1)};

  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Something new begins; the time counts from here.
  void begin(std::string what) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    deadline_ = std::chrono::steady_clock::now() + kPatience;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      changed_.wait_until(lock, deadline_);
      if (stop_ || std::chrono::steady_clock::now() < deadline_) continue;
      std::fprintf(stderr, "HANGS: %s\n", what_.c_str());
      std::abort();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_ = "the beginning";
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + kPatience;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tuck::test

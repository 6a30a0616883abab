// Threads that are led through a given interleaving: stops at sync points, and actors that end even
// when the test has failed in between.
#pragma once

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "base/sync_point.h"

namespace tuck::test {

// Tests that need sync points: TEST_F of a fixture derived from this.
class Schedule : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kSyncPoints) GTEST_SKIP() << "this build has no sync points (TUCK_SYNC_POINTS)";
  }
};

// A thread of a schedule.
class Actor {
 public:
  template <class Body>
  explicit Actor(Body body) : thread_(std::move(body)) {}
  // A test that ends early leaves nobody standing at a stop.
  ~Actor() {
    if (!thread_.joinable()) return;
    SyncStop::let_all_go();
    thread_.join();
  }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  void join() { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace tuck::test

// The stops that the schedules of other tests stand on; and that without TUCK_SYNC_POINTS a point
// is nothing.
#include "base/sync_point.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string_view>

#include "base/mutex.h"
#include "tests/support/schedule.h"

namespace tuck {
namespace {

using test::Actor;

#define TUCK_TEXT_OF(...) #__VA_ARGS__
#define TUCK_EXPANDED(...) TUCK_TEXT_OF(__VA_ARGS__)

#if !defined(TUCK_SYNC_POINTS)
// Not a call, not a load, not even the name.
static_assert(std::string_view(TUCK_EXPANDED(TUCK_SYNC_POINT("a.name"))) == "static_cast<void>(0)");
#else
static_assert(std::string_view(TUCK_EXPANDED(TUCK_SYNC_POINT("a.name"))) ==
              "::tuck::reach_sync_point(\"a.name\")");
#endif

class SyncPoint : public test::Schedule {};

TEST_F(SyncPoint, WithoutAStopNobodyStops) {
  TUCK_SYNC_POINT("test.a");
  const SyncStop other("test.b");
  Actor actor([] { TUCK_SYNC_POINT("test.a"); });
  actor.join();
  EXPECT_FALSE(other.reached());
}

TEST_F(SyncPoint, TheFirstToComeStopsAndTheOthersPass) {
  std::atomic<int> passed{0};
  const auto body = [&] {
    TUCK_SYNC_POINT("test.a");
    ++passed;
  };
  SyncStop stop("test.a");
  Actor first(body);
  ASSERT_TRUE(stop.wait_until_reached());
  Actor second(body);
  second.join();
  EXPECT_EQ(passed.load(), 1);
  stop.let_go();
  first.join();
  EXPECT_EQ(passed.load(), 2);
}

TEST_F(SyncPoint, ItsMakerPasses) {
  SyncStop stop("test.a");
  TUCK_SYNC_POINT("test.a");
  EXPECT_FALSE(stop.reached());
  Actor actor([] { TUCK_SYNC_POINT("test.a"); });
  EXPECT_TRUE(stop.wait_until_reached());
}

TEST_F(SyncPoint, SoManyPassesFirst) {
  std::atomic<int> passed{0};
  SyncStop stop("test.a", 2);
  Actor actor([&] {
    for (int i = 0; i < 5; ++i) {
      TUCK_SYNC_POINT("test.a");
      ++passed;
    }
  });
  ASSERT_TRUE(stop.wait_until_reached());
  EXPECT_EQ(passed.load(), 2);
  stop.let_go();
  actor.join();
  EXPECT_EQ(passed.load(), 5);
}

TEST_F(SyncPoint, TwoStopsAtOnePointHoldTwoThreads) {
  std::atomic<int> passed{0};
  const auto body = [&](int weight) {
    TUCK_SYNC_POINT("test.a");
    passed += weight;
  };
  SyncStop one("test.a");
  SyncStop two("test.a");
  Actor first([&] { body(1); });
  ASSERT_TRUE(one.wait_until_reached());
  Actor second([&] { body(10); });
  ASSERT_TRUE(two.wait_until_reached());
  EXPECT_EQ(passed.load(), 0);
  two.let_go();
  second.join();
  EXPECT_EQ(passed.load(), 10);
  one.let_go();
  first.join();
  EXPECT_EQ(passed.load(), 11);
}

TEST_F(SyncPoint, AStopThatGoesLetsItsThreadGo) {
  Actor actor([] { TUCK_SYNC_POINT("test.a"); });
  {
    SyncStop stop("test.b");
    Actor inside([] { TUCK_SYNC_POINT("test.b"); });
    ASSERT_TRUE(stop.wait_until_reached());
    SyncStop::let_all_go();
    inside.join();
    // Let go once, it holds nobody any more.
    Actor later([] { TUCK_SYNC_POINT("test.b"); });
    later.join();
  }
  actor.join();
}

TEST_F(SyncPoint, ALockThatIsHeldIsSeenToBeWaitedFor) {
  Mutex mutex(LockRank::admin);
  std::atomic<int> locked{0};
  const auto lock_it = [&] {
    const MutexLock guard(mutex);
    ++locked;
    TUCK_SYNC_POINT("test.holds");
  };
  SyncStop holds("test.holds");
  Actor first(lock_it);
  ASSERT_TRUE(holds.wait_until_reached());
  SyncStop waits("base.mutex.waits");
  SyncStop holds_too("test.holds");
  Actor second(lock_it);
  ASSERT_EQ(SyncStop::wait_for_any({&holds_too, &waits}), &waits);
  EXPECT_EQ(locked.load(), 1);
  waits.let_go();
  holds.let_go();
  ASSERT_TRUE(holds_too.wait_until_reached());
  EXPECT_EQ(locked.load(), 2);
  holds_too.let_go();
  first.join();
  second.join();
}

}  // namespace
}  // namespace tuck

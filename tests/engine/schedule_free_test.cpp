// A batched free against stores into the middle of its run, and against other frees.
#include "tests/engine/schedule_fixture.h"

namespace tuck::engine::test {
namespace {

// The run is three groups of 16 slots; the free stands in the middle one.
class EngineScheduleFree : public EngineSchedule {
 protected:
  static constexpr uint32_t kRun = 48;
  static constexpr uint32_t kBehind = 3;   // of the group that is freed already
  static constexpr uint32_t kMiddle = 20;  // of the group that the free stands at
  static constexpr uint32_t kAhead = 40;   // of the group that is still to come

  void fill() {
    for (uint32_t at = 0; at < kRun; ++at)
      ASSERT_EQ(store(at, 1), Errc::ok);
  }
  // Which of the run's slots hold version 2; all others are empty.
  void expect_only(std::initializer_list<uint32_t> stored) {
    for (uint32_t at = 0; at < kRun; ++at) {
      const bool is = std::find(stored.begin(), stored.end(), at) != stored.end();
      EXPECT_TRUE(holds(at, is ? 2 : 0)) << at;
    }
    expect_clean();
    EXPECT_EQ(objects(), stored.size());
  }
  // freer: free(0 … 47) ── stands at the point of the middle group ──────────── goes on
  // test:                     store into the group behind, at, ahead
  void store_while_it_stands_at(const char* point) {
    fill();
    SyncStop stop(point, 1);
    Actor freer([&] { EXPECT_EQ(free(0, kRun), Errc::ok); });
    ASSERT_TRUE(stop.wait_until_reached());
    for (const uint32_t at : {kBehind, kMiddle, kAhead})
      ASSERT_EQ(store(at, 2), Errc::ok);
    maintain();
    stop.let_go();
    freer.join();
  }
};

// Not yet at the lock: what is stored now is freed with the rest.
TEST_F(EngineScheduleFree, AStoreBeforeTheMiddleGroupIsLockedIsFreed) {
  store_while_it_stands_at("engine.free.looked");
  expect_only({kBehind});
}
TEST_F(EngineScheduleFree, AStoreJustBeforeTheLockIsFreed) {
  store_while_it_stands_at("engine.publish.begins");
  expect_only({kBehind});
}
// Past the lock: what is stored now stays.
TEST_F(EngineScheduleFree, AStoreAfterTheMiddleGroupStays) {
  store_while_it_stands_at("engine.publish.published");
  expect_only({kBehind, kMiddle});
}

// freer: free(0 … 47) ── holds the middle group's lock ──────────── empties it, and the third
// other:                 store(20) must wait for the lock ── stays
TEST_F(EngineScheduleFree, AStoreWaitsForTheLockAndStays) {
  fill();
  SyncStop stop("engine.publish.locked", 1);
  Actor freer([&] { EXPECT_EQ(free(0, kRun), Errc::ok); });
  ASSERT_TRUE(stop.wait_until_reached());
  SyncStop waits("base.mutex.waits");
  SyncStop published("engine.publish.published");
  Actor other([&] { EXPECT_EQ(store(kMiddle, 2), Errc::ok); });
  EXPECT_EQ(SyncStop::wait_for_any({&waits, &published}), &waits);
  waits.let_go();
  published.let_go();
  stop.let_go();
  freer.join();
  other.join();
  expect_only({kMiddle});
}

// freer: free(0 … 47) ── third group looked at ──────────── finds it empty, retires nothing twice
// test:                     free(0 … 47)
TEST_F(EngineScheduleFree, TwoFreesOfOneRun) {
  fill();
  SyncStop stop("engine.free.looked", 2);
  Actor freer([&] { EXPECT_EQ(free(0, kRun), Errc::ok); });
  ASSERT_TRUE(stop.wait_until_reached());
  EXPECT_EQ(free(0, kRun), Errc::ok);
  EXPECT_EQ(engine_->stats().operations.pages_freed, kRun);
  stop.let_go();
  freer.join();
  EXPECT_EQ(engine_->stats().operations.pages_freed, kRun);
  expect_only({});
}

// sweeper: maintain ── zspages emptied, out of the class, their frames still theirs ── gives them
// test:                  store pages of the same class, check them             back
TEST_F(EngineScheduleFree, StoresWhileEmptiedZspagesAreOnTheirWay) {
  fill();
  ASSERT_EQ(free(0, kRun), Errc::ok);
  SyncStop stop("allocator.free.unlocked");
  Actor sweeper([&] { engine_->maintain(); });
  ASSERT_TRUE(stop.wait_until_reached());
  for (uint32_t at = 0; at < kRun; ++at)
    ASSERT_EQ(store(at, 2), Errc::ok);
  stop.let_go();
  sweeper.join();
  for (uint32_t at = 0; at < kRun; ++at)
    EXPECT_TRUE(holds(at, 2)) << at;
  expect_clean();
}

// early:  load(30) ── entry read ───────────────────────── leaves
// freer:    free(0 … 69) ── retired, sealed, not yet looked who is inside ── looks, frees
// late:                       load(75) ── entry read ───────────────────────────────────── leaves
//
// Who enters after the seal cannot have seen the old entries and holds nothing back.
TEST_F(EngineScheduleFree, AReaderThatEntersAfterTheSealHoldsNothingBack) {
  for (uint32_t at = 0; at < 80; ++at)
    ASSERT_EQ(store(at, 1), Errc::ok);
  SyncStop early_reads("engine.load.entry_read");
  Actor early([&] { EXPECT_TRUE(holds(30, 1)); });
  ASSERT_TRUE(early_reads.wait_until_reached());
  SyncStop sealed("engine.pins.sealed");
  Actor freer([&] { EXPECT_EQ(free(0, 70), Errc::ok); });
  ASSERT_TRUE(sealed.wait_until_reached());
  SyncStop late_reads("engine.load.entry_read");
  Actor late([&] { EXPECT_TRUE(holds(75, 1)); });
  ASSERT_TRUE(late_reads.wait_until_reached());
  early_reads.let_go();
  early.join();
  EXPECT_EQ(objects(), 80u);
  sealed.let_go();
  freer.join();
  EXPECT_EQ(engine_->stats().retired_objects, 0u);
  EXPECT_EQ(objects(), 10u);
  late_reads.let_go();
  late.join();
  expect_clean();
}

// The other side: a reader that entered before the seal holds all of it back.
TEST_F(EngineScheduleFree, AReaderThatEnteredBeforeTheSealHoldsAllBack) {
  for (uint32_t at = 0; at < 80; ++at)
    ASSERT_EQ(store(at, 1), Errc::ok);
  SyncStop reads("engine.load.entry_read");
  Actor reader([&] { EXPECT_TRUE(holds(30, 1)); });
  ASSERT_TRUE(reads.wait_until_reached());
  EXPECT_EQ(free(0, 70), Errc::ok);
  maintain();
  EXPECT_EQ(engine_->stats().retired_objects, 70u);
  EXPECT_EQ(objects(), 80u);
  reads.let_go();
  reader.join();
  expect_clean();
  EXPECT_EQ(objects(), 10u);
}

}  // namespace
}  // namespace tuck::engine::test

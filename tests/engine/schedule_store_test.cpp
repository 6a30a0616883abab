// Stores of one slot against each other: whoever publishes last is what is there, the other's
// object is retired once, and nothing is lost between the two.
#include "tests/engine/schedule_fixture.h"

namespace tuck::engine::test {
namespace {

class EngineScheduleStore : public EngineSchedule {
 protected:
  // one: store(0, 1) ── stops at the point ───────
  // two: store(0, 2) ── stops at the point ───────   then one after the other goes on
  void both_stand_at(const char* point, bool one_goes_first, uint32_t before) {
    if (before != 0) {
      ASSERT_EQ(store(0, before), Errc::ok);
    }
    Errc one_said = Errc::invalid;
    Errc two_said = Errc::invalid;
    SyncStop one_stands(point);
    Actor one([&] { one_said = store(0, 1); });
    ASSERT_TRUE(one_stands.wait_until_reached());
    SyncStop two_stands(point);
    Actor two([&] { two_said = store(0, 2); });
    ASSERT_TRUE(two_stands.wait_until_reached());
    EXPECT_TRUE(holds(0, before)) << "nothing is published yet";
    (one_goes_first ? one_stands : two_stands).let_go();
    (one_goes_first ? one : two).join();
    EXPECT_TRUE(holds(0, one_goes_first ? 1 : 2));
    (one_goes_first ? two_stands : one_stands).let_go();
    (one_goes_first ? two : one).join();
    EXPECT_EQ(one_said, Errc::ok);
    EXPECT_EQ(two_said, Errc::ok);
    EXPECT_TRUE(holds(0, one_goes_first ? 2 : 1));
    expect_clean();
    EXPECT_EQ(objects(), 1u);
  }
};

TEST_F(EngineScheduleStore, BothPreparedTheFirstPublishesFirst) {
  both_stand_at("engine.store.prepared", true, 0);
}
TEST_F(EngineScheduleStore, BothPreparedTheSecondPublishesFirst) {
  both_stand_at("engine.store.prepared", false, 0);
}
// As before, over a page: both would retire it if they looked before they published.
TEST_F(EngineScheduleStore, BothPreparedOverAPage) {
  both_stand_at("engine.store.prepared", true, 9);
}
TEST_F(EngineScheduleStore, BothBeforeTheLockTheFirstPublishesFirst) {
  both_stand_at("engine.publish.begins", true, 9);
}
TEST_F(EngineScheduleStore, BothBeforeTheLockTheSecondPublishesFirst) {
  both_stand_at("engine.publish.begins", false, 9);
}

// one: store(0, 1) ── holds the group's lock ──────────────────── publishes
// two:                store(3, 1) of the same group must wait for the lock ── publishes
TEST_F(EngineScheduleStore, TheGroupIsPublishedByOneAtATime) {
  SyncStop one_holds("engine.publish.locked");
  Actor one([&] { EXPECT_EQ(store(0, 1), Errc::ok); });
  ASSERT_TRUE(one_holds.wait_until_reached());
  SyncStop two_waits("base.mutex.waits");
  SyncStop two_holds("engine.publish.locked");
  Actor two([&] { EXPECT_EQ(store(3, 1), Errc::ok); });
  ASSERT_EQ(SyncStop::wait_for_any({&two_waits, &two_holds}), &two_waits);
  // Of another group: does not wait.
  EXPECT_EQ(store(100, 1), Errc::ok);
  EXPECT_TRUE(holds(0, 0));
  EXPECT_TRUE(holds(3, 0));
  two_waits.let_go();
  two_holds.let_go();
  one_holds.let_go();
  one.join();
  two.join();
  EXPECT_TRUE(holds(0, 1));
  EXPECT_TRUE(holds(3, 1));
  expect_clean();
}

// one:  store(0, 1) over 9 ── published, 9 not yet retired ────────────── retires 9
// test:                   store(0, 2), free(0), store(0, 3), maintain
//
// What one has taken out belongs to it alone: the others retire 1 and 2, never 9.
TEST_F(EngineScheduleStore, TakenOutAndNotYetRetired) {
  ASSERT_EQ(store(0, 9), Errc::ok);
  const uint64_t old_place = place(0);
  SyncStop stop("engine.publish.published");
  Actor one([&] { EXPECT_EQ(store(0, 1), Errc::ok); });
  ASSERT_TRUE(stop.wait_until_reached());
  EXPECT_TRUE(holds(0, 1));
  EXPECT_EQ(store(0, 2), Errc::ok);
  EXPECT_EQ(free(0), Errc::ok);
  EXPECT_EQ(store(0, 3), Errc::ok);
  maintain();
  EXPECT_FALSE(is_taken_by_others(old_place, 16, 80, 4));
  stop.let_go();
  one.join();
  EXPECT_TRUE(holds(0, 3));
  expect_clean();
  EXPECT_EQ(objects(), 65u);
}

// one:  store(0, 1) ── the class has no room ───────────── brings a zspage, and finds room
// test:                store(0, 1) brings one as well
//
// The zspage that turns out not to be needed goes back.
TEST_F(EngineScheduleStore, TwoBringAZspageForOneObject) {
  SyncStop stop("allocator.allocate.class_full");
  Actor one([&] { EXPECT_EQ(store(0, 1, PageKind::text), Errc::ok); });
  ASSERT_TRUE(stop.wait_until_reached());
  EXPECT_EQ(store(0, 1, PageKind::text), Errc::ok);
  stop.let_go();
  one.join();
  uint64_t zspages = 0;
  for (const auto& line : engine_->stats().ledger.classes)
    zspages += line.zspages;
  EXPECT_EQ(zspages, 1u);
  EXPECT_TRUE(holds(0, 1, PageKind::text));
  expect_clean();
}

}  // namespace
}  // namespace tuck::engine::test

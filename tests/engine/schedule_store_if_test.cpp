// Read-modify-writes: what was seen is still there at the moment of publication, or nothing
// happens.
#include "tests/engine/schedule_fixture.h"

namespace tuck::engine::test {
namespace {

class EngineScheduleStoreIf : public EngineSchedule {
 protected:
  // writer: pin, load(0), store_if ── stands at the point ─────────────── must say changed
  // test:                                                  meanwhile()
  template <class Meanwhile>
  void changed_by(Meanwhile meanwhile, uint32_t expected_version, uint64_t expected_objects,
                  const char* point = "engine.store_if.prepared") {
    ASSERT_EQ(store(0, 1), Errc::ok);
    RunResult result;
    SyncStop stop(point);
    Actor writer([&] { result = read_modify_write(0, 5); });
    ASSERT_TRUE(stop.wait_until_reached());
    meanwhile();
    stop.let_go();
    writer.join();
    EXPECT_EQ(result.code, Errc::changed);
    EXPECT_EQ(result.pages_done, 0u);
    EXPECT_TRUE(holds(0, expected_version));
    EXPECT_EQ(engine_->stats().operations.store_if_changed, 1u);
    expect_clean();
    EXPECT_EQ(objects(), expected_objects);
  }

  // writer: store_if(0) ── entry checked, lock held ──────────────── publishes 5
  // other:                 must wait for the lock ── comes after it
  template <class Other>
  void between_check_and_exchange(Other other, uint32_t expected_version) {
    ASSERT_EQ(store(0, 1), Errc::ok);
    RunResult result;
    SyncStop checked("engine.publish.entry_checked");
    Actor writer([&] { result = read_modify_write(0, 5); });
    ASSERT_TRUE(checked.wait_until_reached());
    SyncStop waits("base.mutex.waits");
    SyncStop holds_it("engine.publish.locked");
    Actor second(other);
    EXPECT_EQ(SyncStop::wait_for_any({&waits, &holds_it}), &waits);
    // Lets the other one in where there is no lock to keep it out: then what it stores is lost.
    waits.let_go();
    holds_it.let_go();
    checked.let_go();
    writer.join();
    second.join();
    EXPECT_EQ(result.code, Errc::ok);
    EXPECT_TRUE(holds(0, expected_version));
    expect_clean();
  }
};

TEST_F(EngineScheduleStoreIf, AgainstAStore) {
  changed_by([&] { EXPECT_EQ(store(0, 2), Errc::ok); }, 2, 1);
}
TEST_F(EngineScheduleStoreIf, AgainstAFree) {
  changed_by([&] { EXPECT_EQ(free(0), Errc::ok); }, 0, 0);
}
// Both have seen the same page: one of them changes it.
TEST_F(EngineScheduleStoreIf, AgainstAStoreIf) {
  changed_by([&] { EXPECT_EQ(read_modify_write(0, 3).code, Errc::ok); }, 3, 1);
}
TEST_F(EngineScheduleStoreIf, AgainstAFreeAndAStoreOfTheSameBytes) {
  changed_by(
      [&] {
        EXPECT_EQ(free(0), Errc::ok);
        EXPECT_EQ(store(0, 1), Errc::ok);
      },
      1, 1);
}

// The entry that the writer remembers is the one that its bytes came from, and not one that it
// found when it had decoded them: what is stored in between would be lost.
TEST_F(EngineScheduleStoreIf, AgainstAStoreBeforeItHasDecoded) {
  changed_by([&] { EXPECT_EQ(store(0, 2), Errc::ok); }, 2, 1, "engine.load.entry_read");
}
TEST_F(EngineScheduleStoreIf, AgainstAStoreBeforeItHasNotedWhatItSaw) {
  changed_by([&] { EXPECT_EQ(store(0, 2), Errc::ok); }, 2, 1, "engine.load.decoded");
}

TEST_F(EngineScheduleStoreIf, AStoreWaitsBetweenCheckAndExchange) {
  between_check_and_exchange([&] { EXPECT_EQ(store(0, 2), Errc::ok); }, 2);
}
TEST_F(EngineScheduleStoreIf, AFreeWaitsBetweenCheckAndExchange) {
  between_check_and_exchange([&] { EXPECT_EQ(free(0), Errc::ok); }, 0);
}
TEST_F(EngineScheduleStoreIf, AStoreIfWaitsBetweenCheckAndExchange) {
  between_check_and_exchange([&] { EXPECT_EQ(read_modify_write(0, 3).code, Errc::changed); }, 5);
}

// writer: pin, load(0) at place L, store_if prepared ───────────────────────────── changed
// test:              free(0), maintain, store(0) and elsewhere, again and again
//
// An entry is an address and a length: if the place came back while somebody holds the old entry,
// a new page would pass for the old one. It must not come back before the writer has left, and is
// one that does come back: the test sees it do so afterwards.
TEST_F(EngineScheduleStoreIf, TheSamePlaceDoesNotComeBackWhileItIsRemembered) {
  ASSERT_EQ(store(0, 1), Errc::ok);
  const Entry old = entry(0);
  RunResult result;
  SyncStop stop("engine.store_if.prepared");
  Actor writer([&] { result = read_modify_write(0, 5); });
  ASSERT_TRUE(stop.wait_until_reached());
  for (uint32_t round = 0; round < 40; ++round) {
    ASSERT_EQ(free(0), Errc::ok);
    maintain();
    ASSERT_EQ(store(0, 10 + round), Errc::ok);
    ASSERT_FALSE(entry(0).same_content(old)) << "round " << round;
    ASSERT_EQ(store(16 + round, 1), Errc::ok);
    ASSERT_NE(place(16 + round), old.location());
  }
  stop.let_go();
  writer.join();
  EXPECT_EQ(result.code, Errc::changed);
  EXPECT_TRUE(holds(0, 49));
  expect_clean();
  bool came_back = false;
  for (uint32_t at = 100; at < 200 && !came_back; ++at) {
    ASSERT_EQ(store(at, 1), Errc::ok);
    came_back = place(at) == old.location();
  }
  EXPECT_TRUE(came_back) << "the schedule proves nothing";
}

// The same under the pin of the very thread that stores and frees in between, and with the pin's
// own line as the place where the old object is retired.
TEST_F(EngineScheduleStoreIf, NorUnderThePinThatReplacedIt) {
  ASSERT_EQ(store(0, 1), Errc::ok);
  const Pin pin = engine_->pin();
  Page bytes;
  Entry seen;
  ASSERT_EQ(engine_->load(pin, area_, slot(0), 1, bytes.data(), &seen).code, Errc::ok);
  ASSERT_EQ(store_over(pin, 0, seen, 2).code, Errc::ok);
  for (uint32_t version = 3; version < 40; ++version) {
    ASSERT_EQ(free(0), Errc::ok);
    maintain();
    ASSERT_EQ(store(0, version), Errc::ok);
    ASSERT_EQ(store_over(pin, 0, seen, 50).code, Errc::changed);
    ASSERT_TRUE(holds(0, version));
  }
}

// An empty slot has no place: stored and freed again it is as it was, and the store_if goes
// through.
TEST_F(EngineScheduleStoreIf, AnEmptySlotThatWasStoredAndFreedIsAsItWas) {
  RunResult result;
  SyncStop stop("engine.store_if.prepared");
  Actor writer([&] { result = read_modify_write(0, 5); });
  ASSERT_TRUE(stop.wait_until_reached());
  ASSERT_EQ(store(0, 1), Errc::ok);
  ASSERT_EQ(free(0), Errc::ok);
  stop.let_go();
  writer.join();
  EXPECT_EQ(result.code, Errc::ok);
  EXPECT_TRUE(holds(0, 5));
  expect_clean();
  EXPECT_EQ(objects(), 1u);
}

// writer: pin, load(0 … 5), store_if prepared ──────────────── pages 0 and 1, then changed
// test:                         store(2, 2), free(4)
//
// It stops at the first page that is another, and what it has prepared for the rest goes back.
TEST_F(EngineScheduleStoreIf, ARunStopsAtTheFirstChangedPage) {
  for (uint32_t at = 0; at < 6; ++at)
    ASSERT_EQ(store(at, 1), Errc::ok);
  RunResult result;
  SyncStop prepared("engine.store_if.prepared");
  SyncStop discards("engine.store_if.discards");
  Actor writer([&] {
    Pages data(size_t{6} * kPageSize);
    std::vector<Entry> seen(6);
    const Pin pin = engine_->pin();
    ASSERT_EQ(engine_->load(pin, area_, slot(0), 6, data.data(), seen.data()).code, Errc::ok);
    for (uint32_t at = 0; at < 6; ++at)
      fill_page(key(at, 5), PageKind::random, data.data() + size_t{at} * kPageSize);
    result = engine_->store_if(pin, area_, slot(0), 6, data.data(), seen.data());
  });
  ASSERT_TRUE(prepared.wait_until_reached());
  ASSERT_EQ(store(2, 2), Errc::ok);
  ASSERT_EQ(free(4), Errc::ok);
  prepared.let_go();
  ASSERT_TRUE(discards.wait_until_reached());
  // What it did is done, before it has cleaned up.
  const std::vector<uint32_t> expected = {5, 5, 2, 1, 0, 1};
  for (uint32_t at = 0; at < 6; ++at)
    EXPECT_TRUE(holds(at, expected[at])) << at;
  discards.let_go();
  writer.join();
  EXPECT_EQ(result.code, Errc::changed);
  EXPECT_EQ(result.pages_done, 2u);
  expect_clean();
  EXPECT_EQ(objects(), 5u);
}

}  // namespace
}  // namespace tuck::engine::test

// Loads, which take no lock, against everything that would take the object from under them.
#include "tests/engine/schedule_fixture.h"

namespace tuck::engine::test {
namespace {

class EngineScheduleLoad : public EngineSchedule {
 protected:
  struct Loaded {
    RunResult result;
    Page bytes{};
  };

  // reader: load(0) ── stops at the point ────────────────────────────────── goes on, returns
  // test:                 free(0) or store(0, new); maintain; store others
  //
  // The reader must find its bytes, and nobody may be given the object's place before it is out.
  // Afterwards the place is as good as any.
  void run(const char* point, PageKind kind, bool overwrite) {
    ASSERT_EQ(store(0, 1, kind), Errc::ok);
    const uint64_t old_place = place(0);
    Loaded loaded;
    SyncStop stop(point);
    Actor reader([&] { loaded.result = engine_->load(area_, slot(0), 1, loaded.bytes.data()); });
    ASSERT_TRUE(stop.wait_until_reached());
    ASSERT_EQ(overwrite ? store(0, 2, kind) : free(0), Errc::ok);
    maintain();
    EXPECT_EQ(engine_->stats().retired_objects, 1u);
    for (uint32_t at = 16; at < 80; ++at) {
      ASSERT_EQ(store(at, 3, kind), Errc::ok);
      ASSERT_NE(place(at), old_place) << "given away while a reader is inside";
      // Frees, so that the allocator would have a reason to hand it out again.
      if (at % 2 == 0) {
        ASSERT_EQ(free(at), Errc::ok);
        maintain();
      }
    }
    stop.let_go();
    reader.join();
    ASSERT_EQ(loaded.result.code, Errc::ok);
    EXPECT_TRUE(is_page(key(0, 1), kind, loaded.bytes.data()));
    EXPECT_TRUE(holds(0, overwrite ? 2 : 0, kind));
    expect_clean();
  }
};

TEST_F(EngineScheduleLoad, EntryReadThenFreed) {
  run("engine.load.entry_read", PageKind::random, false);
}
TEST_F(EngineScheduleLoad, EntryReadThenOverwritten) {
  run("engine.load.entry_read", PageKind::random, true);
}
TEST_F(EngineScheduleLoad, EntryReadOfACompressedPageThenFreed) {
  run("engine.load.entry_read", PageKind::text, false);
}
TEST_F(EngineScheduleLoad, OwnerCheckedThenFreed) {
  run("engine.load.owner_checked", PageKind::random, false);
}
TEST_F(EngineScheduleLoad, OwnerCheckedThenOverwritten) {
  run("engine.load.owner_checked", PageKind::text, true);
}
TEST_F(EngineScheduleLoad, DecodedThenFreed) {
  run("engine.load.decoded", PageKind::random, false);
}
TEST_F(EngineScheduleLoad, DecodedThenOverwritten) {
  run("engine.load.decoded", PageKind::text, true);
}

// reader: load(0 … 15) ── 8 pages decoded, entry 8 read ────────────────────── the other 7
// test:                       store(0 … 15, new), free(12), maintain
//
// Each page is the old one or the new one: old up to where the reader stood, new behind it.
TEST_F(EngineScheduleLoad, HalfOfARunDecodedThenOverwritten) {
  for (uint32_t at = 0; at < 16; ++at)
    ASSERT_EQ(store(at, 1, PageKind::text), Errc::ok);
  Pages out(size_t{16} * kPageSize);
  RunResult result;
  SyncStop stop("engine.load.entry_read", 8);
  Actor reader([&] { result = engine_->load(area_, slot(0), 16, out.data()); });
  ASSERT_TRUE(stop.wait_until_reached());
  for (uint32_t at = 0; at < 16; ++at)
    ASSERT_EQ(store(at, 2, PageKind::text), Errc::ok);
  ASSERT_EQ(free(12), Errc::ok);
  maintain();
  stop.let_go();
  reader.join();
  ASSERT_EQ(result.code, Errc::ok);
  for (uint32_t at = 0; at < 16; ++at) {
    const std::byte* const bytes = out.data() + size_t{at} * kPageSize;
    if (at == 12) {
      EXPECT_TRUE(tuck::test::is_zero_page(bytes));
    } else {
      EXPECT_TRUE(is_page(key(at, at <= 8 ? 1 : 2), PageKind::text, bytes)) << at;
    }
  }
  expect_clean();
}

// reader: load(0): has read the epoch's number, and is not yet in it ────────── enters, reads
// test:                       store(0, new); maintain frees the old object
//
// Nobody was inside, so the object is freed at once; the reader enters with the old number and
// sees what is there by then.
TEST_F(EngineScheduleLoad, EntersLateWithAnOldNumber) {
  ASSERT_EQ(store(0, 1), Errc::ok);
  const uint64_t old_place = place(0);
  RunResult result;
  Page bytes;
  SyncStop stop("base.epochs.epoch_read");
  Actor reader([&] { result = engine_->load(area_, slot(0), 1, bytes.data()); });
  ASSERT_TRUE(stop.wait_until_reached());
  ASSERT_EQ(store(0, 2), Errc::ok);
  maintain();
  EXPECT_EQ(engine_->stats().retired_objects, 0u);
  EXPECT_TRUE(is_taken_by_others(old_place, 16, 80, 3));
  stop.let_go();
  reader.join();
  ASSERT_EQ(result.code, Errc::ok);
  EXPECT_TRUE(is_page(key(0, 2), PageKind::random, bytes.data()));
  expect_clean();
}

}  // namespace
}  // namespace tuck::engine::test

// Room: fetched at the limit, waited for with tickets, given back by maintain() and quiesce(); and
// areas that go while somebody is inside.
#include <atomic>

#include "tests/engine/schedule_fixture.h"

namespace tuck::engine::test {
namespace {

class EngineScheduleRoom : public EngineSchedule {
 protected:
  // Fills slots from `from` on with random pages until nothing more can be had; the first slot that
  // is empty.
  uint32_t fill_up(uint32_t from, uint32_t version) {
    while (store(from, version) == Errc::ok)
      ++from;
    return from;
  }
  void make_limited() {
    EngineOptions options = quiet_options(source_);
    options.memory_limit_bytes = 1u << 20;
    options.reserve_bytes = 256u << 10;
    make(options);
  }
  void make_waiting() {
    EngineOptions options = quiet_options(source_);
    options.empty_reserve = EmptyReserve::wait;
    options.reserve_bytes = 512u << 10;
    make(options);
  }
};

// --- At the limit --------------------------------------------------------------------------------

// writer: store at the limit, refused ── is about to fetch room ──────── finds some, stores
// test:                                     free(2 … 9): retired, nobody has freed them yet
TEST_F(EngineScheduleRoom, RoomThatIsFreedMeanwhileIsFetched) {
  make_limited();
  const uint32_t end = fill_up(0, 1);
  ASSERT_GT(end, 16u);
  Errc said = Errc::invalid;
  SyncStop stop("engine.fetch_room.begins");
  Actor writer([&] { said = store(end, 2); });
  ASSERT_TRUE(stop.wait_until_reached());
  ASSERT_EQ(free(2, 8), Errc::ok);
  stop.let_go();
  writer.join();
  EXPECT_EQ(said, Errc::ok);
  EXPECT_TRUE(holds(end, 2));
  expect_clean();
}

// writer: store over slot 0 at the limit ── has fetched room ──────────── finds it taken: no_space,
// test:                       free(2), before;      takes the room        slot 0 is as it was
TEST_F(EngineScheduleRoom, RoomThatOthersTakeIsRefused) {
  make_limited();
  const uint32_t end = fill_up(0, 1);
  ASSERT_GT(end, 16u);
  ASSERT_EQ(free(2), Errc::ok);
  Errc said = Errc::invalid;
  SyncStop stop("engine.fetch_room.drained");
  Actor writer([&] { said = store(0, 2); });
  ASSERT_TRUE(stop.wait_until_reached());
  const uint32_t full = fill_up(end, 3);
  EXPECT_GT(full, end) << "there was room for one at least";
  stop.let_go();
  writer.join();
  EXPECT_EQ(said, Errc::no_space);
  EXPECT_TRUE(holds(0, 1)) << "a failed store leaves the old page";
  expect_clean();
}

// reader: load(20) ── entry read ─────────────────────────────────────────── leaves
// test:     free(2 … 9); store: what is free cannot be had while the reader      store: room
//           is inside, and is not waited for: no_space
TEST_F(EngineScheduleRoom, RoomThatAReaderHoldsBackIsNotWaitedFor) {
  make_limited();
  const uint32_t end = fill_up(0, 1);
  ASSERT_GT(end, 30u);
  SyncStop stop("engine.load.entry_read");
  Actor reader([&] { EXPECT_TRUE(holds(20, 1)); });
  ASSERT_TRUE(stop.wait_until_reached());
  ASSERT_EQ(free(2, 8), Errc::ok);
  EXPECT_EQ(store(0, 2), Errc::no_space);
  EXPECT_TRUE(holds(0, 1));
  stop.let_go();
  reader.join();
  EXPECT_EQ(store(0, 2), Errc::ok);
  EXPECT_TRUE(holds(0, 2));
  expect_clean();
}

// --- Tickets -------------------------------------------------------------------------------------

// test: store says pending ── maintain lets the ticket go ── wait() returns at once
TEST_F(EngineScheduleRoom, LetGoBetweenPendingAndWait) {
  make_waiting();
  Ticket ticket;
  RunResult result;
  uint32_t at = 0;
  for (; result.code == Errc::ok; ++at)
    result = engine_->store(area_, slot(at), 1, page(at, 1).data(), &ticket);
  ASSERT_EQ(result.code, Errc::pending);
  ASSERT_TRUE(ticket.waiting());
  engine_->maintain();
  EXPECT_FALSE(ticket.waiting());
  ticket.wait();
  EXPECT_EQ(engine_->store(area_, slot(at), 1, page(at, 1).data(), &ticket).code, Errc::ok);
  expect_clean();
}

class Waiter {
 public:
  explicit Waiter(Engine& engine) : engine_(engine) {}

  // Stores random pages from slot 0 on until one is told to wait; its number.
  template <class PageOf>
  uint32_t store_until_pending(AreaId area, PageOf page_of) {
    for (uint32_t at = 0;; ++at) {
      const RunResult stored = engine_.store(area, slot(at), 1, page_of(at).data(), &ticket);
      if (stored.code == Errc::ok) continue;
      EXPECT_EQ(stored.code, Errc::pending);
      return at;
    }
  }

  std::atomic<uint32_t> notified{0};
  Ticket ticket{[](Ticket& t) noexcept { ++*static_cast<std::atomic<uint32_t>*>(t.context()); },
                &notified};

 private:
  Engine& engine_;
};

// writer: store, no frames ── about to wait ─────────────── its ticket waits; pending
// test:                          maintain: frames come,           maintain: lets it go
//                                and there is no ticket yet
//
// The refill that came too early for the ticket is not the last chance it has.
TEST_F(EngineScheduleRoom, FramesComeBeforeTheTicketWaits) {
  make_waiting();
  Waiter waiter(*engine_);
  uint32_t at = 0;
  SyncStop stop("engine.give_up.pending");
  Actor writer(
      [&] { at = waiter.store_until_pending(area_, [&](uint32_t i) { return page(i, 1); }); });
  ASSERT_TRUE(stop.wait_until_reached());
  engine_->maintain();
  EXPECT_EQ(waiter.notified.load(), 0u);
  stop.let_go();
  writer.join();
  EXPECT_TRUE(waiter.ticket.waiting());
  engine_->maintain();
  EXPECT_FALSE(waiter.ticket.waiting());
  EXPECT_EQ(waiter.notified.load(), 1u);
  EXPECT_EQ(store(at, 1), Errc::ok);
  expect_clean();
}

// writer: store, no frames ── its ticket waits ──────────────── returns pending, as it must
// test:                          maintain: lets it go
//
// The callback comes before the call has returned; the caller goes again all the same.
TEST_F(EngineScheduleRoom, LetGoBeforeTheStoreHasReturned) {
  make_waiting();
  Waiter waiter(*engine_);
  uint32_t at = 0;
  SyncStop stop("engine.give_up.ticket_waits");
  Actor writer(
      [&] { at = waiter.store_until_pending(area_, [&](uint32_t i) { return page(i, 1); }); });
  ASSERT_TRUE(stop.wait_until_reached());
  engine_->maintain();
  EXPECT_EQ(waiter.notified.load(), 1u);
  stop.let_go();
  writer.join();
  EXPECT_FALSE(waiter.ticket.waiting());
  EXPECT_EQ(store(at, 1), Errc::ok);
  engine_->maintain();
  EXPECT_EQ(waiter.notified.load(), 1u) << "let go once";
  expect_clean();
}

// background: refilled ── about to let tickets go ─────────────────────────── lets it go
// test:                     stores until pending: the ticket waits
//
// It came after the refill, and is let go all the same: who waits finds out by calling again.
TEST_F(EngineScheduleRoom, ATicketThatComesBetweenTheRefillAndTheRound) {
  make_waiting();
  Waiter waiter(*engine_);
  SyncStop stop("engine.maintain.refilled");
  Actor background([&] { engine_->maintain(); });
  ASSERT_TRUE(stop.wait_until_reached());
  const uint32_t at = waiter.store_until_pending(area_, [&](uint32_t i) { return page(i, 1); });
  EXPECT_TRUE(waiter.ticket.waiting());
  // A second round at once is none: the first is still at it.
  engine_->maintain();
  EXPECT_TRUE(waiter.ticket.waiting());
  stop.let_go();
  background.join();
  EXPECT_FALSE(waiter.ticket.waiting());
  engine_->maintain();
  EXPECT_EQ(store(at, 1), Errc::ok);
  expect_clean();
}

// quiesce() and remove_area() neither wait for a waiting ticket nor forget it.
TEST_F(EngineScheduleRoom, QuiesceLeavesTicketsAlone) {
  make_waiting();
  Waiter waiter(*engine_);
  static_cast<void>(waiter.store_until_pending(area_, [&](uint32_t i) { return page(i, 1); }));
  ASSERT_EQ(free(0, 32), Errc::ok);
  engine_->quiesce();
  EXPECT_EQ(engine_->stats().retired_objects, 0u);
  EXPECT_TRUE(waiter.ticket.waiting());
  ASSERT_EQ(engine_->remove_area(area_), std::nullopt);
  EXPECT_TRUE(waiter.ticket.waiting());
  engine_->maintain();
  EXPECT_EQ(waiter.notified.load(), 1u);
  area_ = tuck::engine::test::add_area(*engine_, kSlots);
  expect_clean();
  EXPECT_EQ(objects(), 0u);
}

// --- A reader that stays inside ------------------------------------------------------------------

// reader:   load(0) ── entry read ──────────────────────────────────── leaves
// quiescer:              quiesce: waits ─────────────────────────────────────── returns
// test:        free(0)             maintain returns, and frees nothing
TEST_F(EngineScheduleRoom, QuiesceWaitsForTheReaderMaintainDoesNot) {
  ASSERT_EQ(store(0, 1), Errc::ok);
  SyncStop reads("engine.load.entry_read");
  Actor reader([&] { EXPECT_TRUE(holds(0, 1)); });
  ASSERT_TRUE(reads.wait_until_reached());
  ASSERT_EQ(free(0), Errc::ok);
  std::atomic<bool> quiet{false};
  SyncStop waits("engine.pins.drain_waits");
  Actor quiescer([&] {
    engine_->quiesce();
    quiet = true;
  });
  ASSERT_TRUE(waits.wait_until_reached());
  maintain();
  EXPECT_EQ(engine_->stats().retired_objects, 1u);
  // However often it has looked.
  SyncStop still_waits("engine.pins.drain_waits", 1000);
  waits.let_go();
  EXPECT_TRUE(still_waits.wait_until_reached());
  EXPECT_FALSE(quiet.load());
  still_waits.let_go();
  reads.let_go();
  reader.join();
  quiescer.join();
  EXPECT_EQ(engine_->stats().retired_objects, 0u);
  expect_clean();
  EXPECT_EQ(objects(), 0u);
}

// freer:    free(0 … 69) ── about to free, holds its line ──────────── has freed
// quiescer:                   quiesce: finds the line taken, waits ──────────── returns
TEST_F(EngineScheduleRoom, QuiesceWaitsForWhoIsFreeing) {
  for (uint32_t at = 0; at < 70; ++at)
    ASSERT_EQ(store(at, 1), Errc::ok);
  SyncStop frees("engine.pins.frees");
  Actor freer([&] { EXPECT_EQ(free(0, 70), Errc::ok); });
  ASSERT_TRUE(frees.wait_until_reached());
  std::atomic<bool> quiet{false};
  SyncStop waits("engine.pins.drain_waits");
  Actor quiescer([&] {
    engine_->quiesce();
    quiet = true;
  });
  ASSERT_TRUE(waits.wait_until_reached());
  EXPECT_EQ(objects(), 70u);
  SyncStop still_waits("engine.pins.drain_waits", 1000);
  waits.let_go();
  EXPECT_TRUE(still_waits.wait_until_reached());
  EXPECT_FALSE(quiet.load());
  still_waits.let_go();
  frees.let_go();
  freer.join();
  quiescer.join();
  EXPECT_EQ(objects(), 0u);
  expect_clean();
}

// reader: load(0) of its area ── entry read ───────────────────────────────── goes on
// test:       remove_area(another): returns; its objects wait for the reader,
//             stats() and a new area of the same number in between
TEST_F(EngineScheduleRoom, AnAreaGoesWhileAReaderOfAnotherIsInside) {
  const AreaId other = tuck::engine::test::add_area(*engine_, 64);
  ASSERT_EQ(store(0, 1), Errc::ok);
  for (uint32_t at = 0; at < 64; ++at)
    ASSERT_EQ(engine_->store(other, slot(at), 1, page(at, 7).data()).code, Errc::ok);
  SyncStop reads("engine.load.entry_read");
  Actor reader([&] { EXPECT_TRUE(holds(0, 1)); });
  ASSERT_TRUE(reads.wait_until_reached());
  SyncStop emptied("engine.remove_area.emptied");
  Actor remover([&] { EXPECT_EQ(engine_->remove_area(other), std::nullopt); });
  ASSERT_TRUE(emptied.wait_until_reached());
  const Stats between = engine_->stats();
  EXPECT_EQ(between.areas.size(), 2u);
  EXPECT_EQ(between.content.pages_stored, 1u);
  emptied.let_go();
  remover.join();
  EXPECT_EQ(engine_->stats().areas.size(), 1u);
  EXPECT_EQ(engine_->stats().retired_objects, 64u);
  EXPECT_EQ(tuck::engine::test::add_area(*engine_, 64), other);
  Page bytes;
  EXPECT_EQ(engine_->load(other, slot(5), 1, bytes.data()).code, Errc::ok);
  EXPECT_TRUE(tuck::test::is_zero_page(bytes.data()));
  reads.let_go();
  reader.join();
  expect_clean();
  EXPECT_EQ(objects(), 1u);
}

}  // namespace
}  // namespace tuck::engine::test

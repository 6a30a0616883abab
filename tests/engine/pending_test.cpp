// Stores that must wait for room: a source that delays, tickets, and that none is forgotten.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/engine/harness.h"
#include "tests/support/scale.h"
#include "tests/support/threads.h"

namespace tuck::engine::test {
namespace {

using tuck::test::run_threads;
using tuck::test::scaled;
using tuck::test::seed;

constexpr uint64_t kMiB = 1ull << 20;

EngineOptions waiting_options(TestSource& source, bool background) {
  EngineOptions options;
  options.memory = &source;
  options.background_thread = background;
  options.reserve_bytes = kMiB / 2;
  options.empty_reserve = EmptyReserve::wait;
  return options;
}

class LetGo {
 public:
  explicit LetGo(TestSource& source) : source_(source) {}
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;
  ~LetGo() { source_.let_populate(); }

 private:
  TestSource& source_;
};

// Stores and waits until the whole run is stored; returns how often it had to wait.
uint32_t store_waiting(Engine& engine, AreaId area, SlotIndex at, uint32_t pages,
                       const std::byte* data) {
  Ticket ticket;
  uint32_t waits = 0;
  for (uint32_t done = 0; done < pages;) {
    const RunResult stored =
        engine.store(area, at + done, pages - done, data + size_t{done} * kPageSize, &ticket);
    done += stored.pages_done;
    if (stored.code == Errc::ok) break;
    if (stored.code != Errc::pending) {
      ADD_FAILURE() << name_of(stored.code);
      break;
    }
    ++waits;
    ticket.wait();
  }
  return waits;
}

TEST(EnginePending, IsSaidAndEndsByMaintain) {
  TestSource source;
  const auto engine = make_engine(waiting_options(source, false));
  const AreaId area = tuck::engine::test::add_area(*engine, 4096);
  Oracle oracle(*engine, area, 4096, seed());
  std::atomic<uint32_t> notified{0};
  Ticket ticket([](Ticket& t) noexcept { ++*static_cast<std::atomic<uint32_t>*>(t.context()); },
                &notified);
  uint32_t at = 0;
  for (uint32_t wait = 1; wait <= 5; ++wait) {
    const uint64_t populated = source.populated_bytes("pool");
    RunResult stored;
    do {
      stored = oracle.store(at, 16, PageKind::random, &ticket);
      at += stored.pages_done;
    } while (stored.code == Errc::ok);
    ASSERT_EQ(stored.code, Errc::pending);
    EXPECT_EQ(source.populated_bytes("pool"), populated) << "a store populated by itself";
    EXPECT_TRUE(ticket.waiting());
    EXPECT_EQ(notified.load(), wait - 1);
    ASSERT_TRUE(oracle.check_all());
    engine->maintain();
    EXPECT_FALSE(ticket.waiting());
    EXPECT_EQ(notified.load(), wait);
    engine->maintain();
    EXPECT_EQ(notified.load(), wait) << "notified once";
  }
  ASSERT_TRUE(oracle.check_all());
  EXPECT_EQ(engine->stats().operations.stores_pending, 5u);
  engine->verify();
}

TEST(EnginePending, WithoutATicketItIsNoSpace) {
  TestSource source;
  const auto engine = make_engine(waiting_options(source, false));
  const AreaId area = tuck::engine::test::add_area(*engine, 4096);
  Oracle oracle(*engine, area, 4096, seed());
  RunResult stored;
  for (uint32_t at = 0; stored.code == Errc::ok; at += 16) {
    stored = oracle.store(at, 16, PageKind::random);
  }
  EXPECT_EQ(stored.code, Errc::no_space);
  ASSERT_TRUE(oracle.check_all());
}

TEST(EnginePending, TheBackgroundLetsWaitersGo) {
  TestSource source;
  const auto engine = make_engine(waiting_options(source, true));
  const AreaId area = tuck::engine::test::add_area(*engine, 4096);
  Pages data(size_t{4096} * kPageSize);
  for (uint32_t i = 0; i < 4096; ++i) {
    fill_page(PageKey{seed(), 0, i, 1}, PageKind::random, data.data() + size_t{i} * kPageSize);
  }
  EXPECT_GT(store_waiting(*engine, area, slot(0), 4096, data.data()), 0u);
  Pages out(data.size());
  ASSERT_EQ(engine->load(area, slot(0), 4096, out.data()).code, Errc::ok);
  EXPECT_EQ(data, out);
  engine->verify();
}

// The source does not move: stores that must wait say so and return, all others go on.
TEST(EnginePending, AStalledSourceStopsNobodyElse) {
  TestSource source;
  const auto engine = make_engine(waiting_options(source, false));
  const AreaId area = tuck::engine::test::add_area(*engine, 512);
  Oracle oracle(*engine, area, 512, seed());
  Ticket ticket;
  ASSERT_EQ(oracle.store(0, 1, PageKind::text).code, Errc::ok);
  // Leaves and all that must be there is; now the system takes its time.
  source.hold_populate();
  std::jthread background([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      engine->maintain();
  });
  // Whatever happens below, the background is let go before it is joined.
  const LetGo let_go(source);
  RunResult stored;
  uint32_t at = 1;
  do {
    stored = oracle.store(at, 8, PageKind::random, &ticket);
    at += stored.pages_done;
  } while (stored.code == Errc::ok && at < 500);
  ASSERT_EQ(stored.code, Errc::pending);
  // While one waits: loads, frees, stores that need no room, statistics.
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(oracle.check(0, 512));
    ASSERT_EQ(oracle.store(500, 12, PageKind::same_word).code, Errc::ok);
    static_cast<void>(engine->stats());
  }
  oracle.free(2, 30);
  engine->quiesce();
  // What was freed is room for others even now.
  ASSERT_EQ(oracle.store(2, 10, PageKind::random).code, Errc::ok);
  while (source.held() == 0 && ticket.waiting())
    std::this_thread::yield();
  source.let_populate();
  // Notified by each round of maintenance; told to wait again until the frames are there.
  do {
    while (ticket.waiting())
      std::this_thread::yield();
    stored = oracle.store(at, 8, PageKind::random, &ticket);
    at += stored.pages_done;
  } while (stored.code == Errc::pending);
  ASSERT_EQ(stored.code, Errc::ok);
  background.request_stop();
  background.join();
  ASSERT_TRUE(oracle.check_all());
  engine->verify();
}

// Many threads wait at once; each is let go and each store is done.
TEST(EnginePending, ManyWaiters) {
  constexpr uint32_t kThreads = 12;
  const uint32_t pages = scaled(1500);
  TestSource source;
  const auto engine = make_engine(waiting_options(source, true));
  const AreaId area = tuck::engine::test::add_area(*engine, uint64_t{kThreads} * pages);
  std::atomic<uint32_t> waits{0};
  run_threads(kThreads + 1, [&](uint32_t thread) {
    if (thread == kThreads) {
      // The system stalls now and then, until all have waited.
      while (waits.load() < kThreads) {
        source.hold_populate();
        for (int i = 0; i < 100; ++i)
          std::this_thread::yield();
        source.let_populate();
        std::this_thread::yield();
      }
      return;
    }
    Pages run(size_t{20} * kPageSize);
    for (uint32_t at = 0; at < pages; at += 20) {
      const uint32_t count = std::min(20u, pages - at);
      for (uint32_t i = 0; i < count; ++i) {
        const PageKey key{seed(), 0, thread * pages + at + i, 1};
        fill_page(key, PageKind::random, run.data() + size_t{i} * kPageSize);
      }
      waits += store_waiting(*engine, area, slot(thread * pages + at), count, run.data());
    }
    // Should it never have had to wait, the staller must not wait for it.
    ++waits;
  });
  for (uint32_t at = 0; at < kThreads * pages; ++at) {
    tuck::test::Page page;
    ASSERT_EQ(engine->load(area, slot(at), 1, page.data()).code, Errc::ok);
    ASSERT_TRUE(is_page(PageKey{seed(), 0, at, 1}, PageKind::random, page.data()));
  }
  engine->verify();
}

// At the limit there is nothing to wait for: no_space, however small the step to it.
TEST(EnginePending, TheLimitIsNotWaitedFor) {
  for (const uint64_t limit : {kMiB, kMiB + 4096, 3 * kMiB - 4096, 2 * kMiB + 50 * 4096}) {
    TestSource source;
    EngineOptions options = waiting_options(source, true);
    options.memory_limit_bytes = limit;
    const auto engine = make_engine(options);
    const AreaId area = tuck::engine::test::add_area(*engine, 4096);
    Oracle oracle(*engine, area, 4096, seed());
    Ticket ticket;
    RunResult stored;
    for (uint32_t at = 0; stored.code == Errc::ok || stored.code == Errc::pending;
         at += stored.pages_done) {
      stored = oracle.store(at, 8, PageKind::mixed, &ticket);
      if (stored.code == Errc::pending) ticket.wait();
    }
    ASSERT_EQ(stored.code, Errc::no_space);
    ASSERT_TRUE(oracle.check_all());
    oracle.free(0, 4096);
    settle(*engine);
    for (uint32_t at = 0; at < 100; at += stored.pages_done) {
      stored = oracle.store(at, 4, PageKind::random, &ticket);
      ASSERT_TRUE(stored.code == Errc::ok || stored.code == Errc::pending) << at;
      if (stored.code == Errc::pending) ticket.wait();
    }
    ASSERT_TRUE(oracle.check_all());
    engine->verify();
  }
}

// The system gives nothing for a while: waiters are told, and when it gives again all goes on.
TEST(EnginePending, AFailingSourceEndsTheWait) {
  TestSource source;
  const auto engine = make_engine(waiting_options(source, true));
  const AreaId area = tuck::engine::test::add_area(*engine, 512);
  Oracle oracle(*engine, area, 512, seed());
  ASSERT_EQ(oracle.store(0, 1, PageKind::text).code, Errc::ok);
  source.fail_populate(1, true);
  Ticket ticket;
  RunResult stored;
  for (uint32_t at = 0; stored.code == Errc::ok || stored.code == Errc::pending;
       at = (at + stored.pages_done) % 500) {
    stored = oracle.store(at, 8, PageKind::random, &ticket);
    if (stored.code == Errc::pending) ticket.wait();
    if (stored.code == Errc::ok && source.failures() > 1000) break;
  }
  ASSERT_TRUE(oracle.check_all());
  source.fail_nothing();
  for (uint32_t at = 0; at < 500;) {
    stored = oracle.store(at, 8, PageKind::random, &ticket);
    at += stored.pages_done;
    if (stored.code == Errc::pending) ticket.wait();
    // The background finds out by itself that the system gives again.
    if (stored.code == Errc::no_space) std::this_thread::yield();
  }
  ASSERT_TRUE(oracle.check_all());
  engine->verify();
}

// A callback may call the engine: no lock is held that a call takes.
TEST(EnginePending, CallbacksMayCallTheEngine) {
  struct Caller {
    Engine* engine;
    AreaId area;
    std::atomic<uint32_t> called{0};
    Ticket ticket{[](Ticket& t) noexcept { static_cast<Caller*>(t.context())->call(); }, this};

    void call() noexcept {
      tuck::test::Page page;
      fill_page(PageKey{seed(), 0, 1000, 1}, PageKind::same_word, page.data());
      EXPECT_EQ(engine->store(area, slot(1000), 1, page.data()).code, Errc::ok);
      EXPECT_EQ(engine->load(area, slot(1000), 1, page.data()).code, Errc::ok);
      EXPECT_EQ(engine->free(area, slot(1000), 1).code, Errc::ok);
      engine->maintain();
      engine->quiesce();
      EXPECT_GT(engine->stats().operations.stores_pending, 0u);
      ++called;
    }
  };
  TestSource source;
  const auto engine = make_engine(waiting_options(source, true));
  const AreaId area = tuck::engine::test::add_area(*engine, 1024);
  Oracle oracle(*engine, area, 1024, seed());
  Caller caller{engine.get(), area};
  uint32_t waits = 0;
  // The leaves are there, and then the background gets nothing until somebody waits.
  ASSERT_EQ(oracle.store(0, 1024, PageKind::zero).code, Errc::ok);
  const LetGo let_go(source);
  source.hold_populate();
  for (uint32_t at = 0; at < 1000;) {
    const RunResult stored =
        oracle.store(at, std::min(20u, 1000 - at), PageKind::random, &caller.ticket);
    at += stored.pages_done;
    if (stored.code == Errc::ok) continue;
    ASSERT_EQ(stored.code, Errc::pending);
    ++waits;
    source.let_populate();
    while (caller.called.load() < waits)
      std::this_thread::yield();
  }
  source.let_populate();
  EXPECT_GT(waits, 0u);
  EXPECT_EQ(caller.called.load(), waits);
  ASSERT_TRUE(oracle.check(0, 1000));
}

}  // namespace
}  // namespace tuck::engine::test

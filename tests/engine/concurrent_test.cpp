// Threads on the same slots: each page is at every moment one that somebody stored whole, and the
// order in which they are seen is one that can have been.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/engine/harness.h"
#include "tests/support/register_history.h"
#include "tests/support/scale.h"
#include "tests/support/threads.h"

namespace tuck::engine::test {
namespace {

using tuck::test::Clock;
using tuck::test::Page;
using tuck::test::RegisterCall;
using tuck::test::run_threads;
using tuck::test::scaled;
using tuck::test::seed;

// Each thread owns the slots of its number modulo the threads, so that all meet in every group of
// 16 and in every lock, and still each slot's content is known exactly.
void own_slots_step(Engine& engine, AreaId area, Random& random, uint32_t thread, uint32_t threads,
                    std::vector<std::optional<uint32_t>>& versions, uint32_t* version) {
  const uint32_t index = random.below32(static_cast<uint32_t>(versions.size()));
  const uint32_t at = index * threads + thread;
  Page page;
  PageKey key{seed(), value(area), at, 0};
  switch (random.below(8)) {
    case 0:
    case 1:
      ASSERT_EQ(engine.free(area, slot(at), 1).code, Errc::ok);
      versions[index].reset();
      return;
    case 2:
    case 3:
    case 4:
      key.version = ++*version;
      fill_page(key, kind_for(key), page.data());
      ASSERT_EQ(engine.store(area, slot(at), 1, page.data()).code, Errc::ok);
      versions[index] = key.version;
      return;
    default:
      break;
  }
  ASSERT_EQ(engine.load(area, slot(at), 1, page.data()).code, Errc::ok);
  if (!versions[index]) {
    ASSERT_TRUE(tuck::test::is_zero_page(page.data())) << "slot " << at << " was freed";
    return;
  }
  key.version = *versions[index];
  ASSERT_TRUE(is_page(key, kind_for(key), page.data()));
}

TEST(EngineConcurrent, OwnSlotsInSharedGroups) {
  constexpr uint32_t kThreads = 4;
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.background_thread = true;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, 640);
  run_threads(kThreads + 1, [&](uint32_t thread) {
    Random random(seed() + thread);
    if (thread == kThreads) {
      // The codec changes under the writers' hands.
      for (uint32_t i = 0; i < scaled(300); ++i) {
        const std::array<CodecSetting, 5> codecs = {{{CodecKind::lz4, 1},
                                                     {CodecKind::none, 0},
                                                     {CodecKind::zstd, 1},
                                                     {CodecKind::zstd, 9},
                                                     {CodecKind::zstd, -5}}};
        EXPECT_EQ(engine->set_codec(area, codecs[random.below(5)]), std::nullopt);
        static_cast<void>(engine->stats());
        engine->maintain();
        std::this_thread::yield();
      }
      return;
    }
    std::vector<std::optional<uint32_t>> versions(640 / kThreads);
    uint32_t version = 0;
    for (uint32_t i = 0; i < scaled(40000) && !::testing::Test::HasFailure(); ++i) {
      own_slots_step(*engine, area, random, thread, kThreads, versions, &version);
    }
  });
  settle(*engine);
  engine->verify();
  expect_ledger_is_true(*engine, source);
  EXPECT_EQ(engine->stats().operations.loads_corrupt, 0u);
}

// The calls of all threads on a few slots, kept for the judgement at the end.
class Histories {
 public:
  explicit Histories(uint32_t slots) : calls_(slots) {}

  void add(uint32_t at, const std::vector<RegisterCall>& calls) {
    const std::lock_guard lock(mutex_);
    calls_[at].insert(calls_[at].end(), calls.begin(), calls.end());
  }
  void expect_possible() const {
    for (size_t at = 0; at < calls_.size(); ++at) {
      const auto conflict = tuck::test::find_conflict(calls_[at]);
      EXPECT_EQ(conflict, std::nullopt) << "slot " << at << " of " << calls_[at].size() << " calls";
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<RegisterCall>> calls_;
};

// Stores, conditional stores and loads of the same few slots by all threads. Every page stored is
// the only one of its version, so each history has an exact verdict.
class SharedSlots {
 public:
  static constexpr uint32_t kSlots = 6;

  SharedSlots(Engine& engine, AreaId area) : engine_(engine), area_(area), histories_(kSlots) {}

  void work(uint32_t thread, uint32_t steps) {
    Random random(seed() + thread * 7919);
    std::vector<std::vector<RegisterCall>> calls(kSlots);
    for (uint32_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      const uint32_t at = random.below32(kSlots);
      switch (random.below(6)) {
        case 0:
        case 1:
          calls[at].push_back(store(at));
          break;
        case 2:
          store_if(at, calls[at]);
          break;
        default:
          calls[at].push_back(load(at));
          break;
      }
    }
    for (uint32_t at = 0; at < kSlots; ++at)
      histories_.add(at, calls[at]);
  }
  void expect_possible() const { histories_.expect_possible(); }

 private:
  // Kinds that show their version: all but zero, mostly those with an object.
  static PageKind kind_of(const PageKey& key) {
    const PageKind kind = kind_for(key);
    return kind == PageKind::zero ? PageKind::mixed : kind;
  }
  PageKey key(uint32_t at, uint32_t version) const {
    return PageKey{seed(), value(area_), at, version};
  }
  // 0 for zeroes, that is, for what was there before all stores.
  uint32_t version_seen(uint32_t at, const Page& page) {
    const auto version = tuck::test::version_of(key(at, 0), page.data());
    if (!version) return 0;
    const PageKey seen = key(at, *version);
    EXPECT_TRUE(is_page(seen, kind_of(seen), page.data())) << "a torn page";
    return *version;
  }

  RegisterCall store(uint32_t at) {
    RegisterCall call{versions_.fetch_add(1), true, 0, 0};
    Page page;
    fill_page(key(at, call.value), kind_of(key(at, call.value)), page.data());
    call.begin = clock_.now();
    EXPECT_EQ(engine_.store(area_, slot(at), 1, page.data()).code, Errc::ok);
    call.end = clock_.now();
    return call;
  }
  RegisterCall load(uint32_t at) {
    RegisterCall call;
    Page page;
    call.begin = clock_.now();
    EXPECT_EQ(engine_.load(area_, slot(at), 1, page.data()).code, Errc::ok);
    call.end = clock_.now();
    call.value = version_seen(at, page);
    return call;
  }
  void store_if(uint32_t at, std::vector<RegisterCall>& calls) {
    RegisterCall read;
    RegisterCall write{versions_.fetch_add(1), true, 0, 0};
    Page page;
    Page fresh;
    fill_page(key(at, write.value), kind_of(key(at, write.value)), fresh.data());
    Entry seen;
    const Pin pin = engine_.pin();
    read.begin = clock_.now();
    EXPECT_EQ(engine_.load(pin, area_, slot(at), 1, page.data(), &seen).code, Errc::ok);
    read.end = clock_.now();
    write.begin = clock_.now();
    const RunResult stored = engine_.store_if(pin, area_, slot(at), 1, fresh.data(), &seen);
    write.end = clock_.now();
    read.value = version_seen(at, page);
    calls.push_back(read);
    if (stored.code == Errc::ok) {
      // It replaced just what was seen: that was still there at some moment of the store.
      read.begin = write.begin;
      read.end = write.end;
      calls.push_back(read);
      calls.push_back(write);
    } else {
      EXPECT_EQ(stored.code, Errc::changed);
    }
  }

  Engine& engine_;
  const AreaId area_;
  Histories histories_;
  Clock clock_;
  std::atomic<uint32_t> versions_{1};
};

void run_shared(CodecSetting codec) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.background_thread = true;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, 100, codec);
  SharedSlots shared(*engine, area);
  run_threads(4, [&](uint32_t thread) { shared.work(thread, scaled(30000)); });
  shared.expect_possible();
  settle(*engine);
  engine->verify();
  EXPECT_EQ(engine->stats().retired_objects, 0u);
  expect_ledger_is_true(*engine, source);
}

TEST(EngineConcurrent, SharedSlotsLz4) {
  run_shared({CodecKind::lz4, 1});
}
TEST(EngineConcurrent, SharedSlotsZstd) {
  run_shared({CodecKind::zstd, 1});
}
TEST(EngineConcurrent, SharedSlotsRaw) {
  run_shared({CodecKind::none, 0});
}

// Runs that cross groups, stored, freed and loaded by all at once: each page that is seen is zero
// or a whole page of that very slot.
TEST(EngineConcurrent, RunsAndFreesTearNothing) {
  constexpr uint32_t kSlots = 200;
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.background_thread = true;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, kSlots);
  std::atomic<uint32_t> versions{1};
  run_threads(4, [&](uint32_t thread) {
    Random random(seed() + thread);
    Pages data(size_t{64} * kPageSize);
    for (uint32_t i = 0; i < scaled(4000) && !::testing::Test::HasFailure(); ++i) {
      const uint32_t at = random.below32(kSlots - 64);
      const auto pages = static_cast<uint32_t>(random.between(1, 64));
      const uint64_t what = random.below(5);
      if (what == 0) {
        EXPECT_EQ(engine->free(area, slot(at), pages).code, Errc::ok);
      } else if (what < 3) {
        for (uint32_t p = 0; p < pages; ++p) {
          const PageKey key{seed(), value(area), at + p, versions.fetch_add(1)};
          fill_page(key, kind_for(key), data.data() + size_t{p} * kPageSize);
        }
        EXPECT_EQ(engine->store(area, slot(at), pages, data.data()).code, Errc::ok);
      } else {
        EXPECT_EQ(engine->load(area, slot(at), pages, data.data()).code, Errc::ok);
        for (uint32_t p = 0; p < pages; ++p) {
          const std::byte* const page = data.data() + size_t{p} * kPageSize;
          PageKey key{seed(), value(area), at + p, 0};
          const auto version = tuck::test::version_of(key, page);
          if (!version) continue;
          key.version = *version;
          EXPECT_LT(key.version, versions.load());
          EXPECT_TRUE(is_page(key, kind_for(key), page));
        }
      }
    }
  });
  settle(*engine);
  engine->verify();
  EXPECT_EQ(engine->stats().operations.loads_corrupt, 0u);
  EXPECT_EQ(engine->free(area, slot(0), kSlots).code, Errc::ok);
  settle(*engine);
  EXPECT_EQ(engine->stats().ledger.payload_bytes, 0u);
  engine->verify();
  expect_ledger_is_true(*engine, source);
}

// Four counters in each of a few pages, one a thread; every increment is a read-modify-write.
TEST(EngineConcurrent, StoreIfLosesNoIncrement) {
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kPages = 3;
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 16);
  const uint32_t rounds = scaled(8000);
  run_threads(kThreads, [&](uint32_t thread) {
    Random random(seed() + thread);
    for (uint32_t i = 0; i < rounds; ++i) {
      Page page;
      for (;;) {
        const Pin pin = engine->pin();
        Entry seen;
        ASSERT_EQ(engine->load(pin, area, slot(i % kPages), 1, page.data(), &seen).code, Errc::ok);
        std::array<uint64_t, kThreads> counters;
        std::memcpy(counters.data(), page.data(), sizeof counters);
        ++counters[thread];
        std::memcpy(page.data(), counters.data(), sizeof counters);
        // Noise behind them, so that sizes change and objects move.
        const uint64_t noise = random.next();
        for (uint32_t at = 64; at < 64 + noise % 1000; at += 8) {
          std::memcpy(page.data() + at, &noise, sizeof noise);
        }
        const RunResult stored =
            engine->store_if(pin, area, slot(i % kPages), 1, page.data(), &seen);
        if (stored.code == Errc::ok) break;
        ASSERT_EQ(stored.code, Errc::changed);
      }
    }
  });
  std::array<uint64_t, kThreads> sums{};
  for (uint32_t p = 0; p < kPages; ++p) {
    Page page;
    ASSERT_EQ(engine->load(area, slot(p), 1, page.data()).code, Errc::ok);
    std::array<uint64_t, kThreads> counters;
    std::memcpy(counters.data(), page.data(), sizeof counters);
    for (uint32_t t = 0; t < kThreads; ++t)
      sums[t] += counters[t];
  }
  for (const uint64_t sum : sums)
    EXPECT_EQ(sum, rounds);
  settle(*engine);
  engine->verify();
}

// What was seen under a pin stays readable, and comparable, while others overwrite it and its place
// is wanted: a store_if with it must say changed, always.
TEST(EngineConcurrent, APinKeepsWhatItSaw) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.background_thread = true;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, 64);
  Oracle oracle(*engine, area, 64, seed());
  for (uint32_t round = 0; round < scaled(200); ++round) {
    ASSERT_EQ(oracle.store(0, 32, PageKind::text).code, Errc::ok);
    std::vector<Entry> seen(32);
    Pages out(size_t{32} * kPageSize);
    Pages again(out.size());
    const Pin pin = engine->pin();
    ASSERT_EQ(engine->load(pin, area, slot(0), 32, out.data(), seen.data()).code, Errc::ok);
    // Others overwrite and free all of it, several times, in objects of the same sizes.
    run_threads(2, [&](uint32_t thread) {
      Page page;
      for (uint32_t i = 0; i < 100; ++i) {
        const uint32_t at = i % 16 * 2 + thread;
        const PageKey key{seed() + 1, value(area), at, i};
        fill_page(key, PageKind::text, page.data());
        EXPECT_EQ(engine->store(area, slot(at), 1, page.data()).code, Errc::ok);
        if (i % 3 == 0) {
          EXPECT_EQ(engine->free(area, slot(at), 1).code, Errc::ok);
        }
      }
    });
    for (uint32_t at = 0; at < 32; ++at) {
      const RunResult stored = engine->store_if(pin, area, slot(at), 1, out.data(), &seen[at]);
      ASSERT_EQ(stored.code, Errc::changed) << "an old entry passed for the new one";
    }
  }
}

// quiesce() ends although others go on storing.
TEST(EngineConcurrent, QuiesceEndsUnderLoad) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 64);
  std::atomic<bool> stop{false};
  run_threads(3, [&](uint32_t thread) {
    if (thread == 2) {
      for (int i = 0; i < 20; ++i)
        engine->quiesce();
      stop = true;
      return;
    }
    Oracle oracle(*engine, area, 64, seed() + thread);
    while (!stop.load())
      static_cast<void>(oracle.store(thread * 32, 8, PageKind::text));
  });
  engine->quiesce();
  EXPECT_EQ(engine->stats().retired_objects, 0u);
  engine->verify();
}

// Areas are added, filled, emptied and removed beside others' work.
TEST(EngineConcurrent, AreasComeAndGoBesideOthers) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.background_thread = true;
  const auto engine = make_engine(options);
  run_threads(3, [&](uint32_t thread) {
    for (uint32_t round = 0; round < scaled(100); ++round) {
      AreaOptions area_options;
      area_options.slots = 100;
      area_options.codec = thread == 0
                               ? CodecSetting{CodecKind::zstd, static_cast<int>(round % 19 + 1)}
                               : CodecSetting{};
      const auto area = engine->add_area(area_options);
      ASSERT_TRUE(area.ok());
      Oracle oracle(*engine, *area, 100, seed() + thread);
      ASSERT_EQ(oracle.store(0, 100).code, Errc::ok);
      oracle.free(20, 30);
      ASSERT_TRUE(oracle.check_all());
      ASSERT_EQ(engine->remove_area(*area), std::nullopt);
      static_cast<void>(engine->stats());
    }
  });
  settle(*engine);
  engine->verify();
  EXPECT_EQ(engine->stats().ledger.payload_bytes, 0u);
  EXPECT_EQ(engine->stats().slot_table_bytes, 0u);
  expect_ledger_is_true(*engine, source);
}

// Threads at the memory limit together: refusals, but nothing lost and nothing over it.
TEST(EngineConcurrent, TogetherAtTheLimit) {
  constexpr uint32_t kThreads = 4;
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.memory_limit_bytes = 3u << 20;
  options.background_thread = true;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, kThreads * 512);
  std::atomic<uint32_t> refused{0};
  run_threads(kThreads, [&](uint32_t thread) {
    // An area's oracle a thread, over slots of its own.
    Random random(seed() + thread);
    std::vector<std::optional<uint32_t>> versions(512);
    Page page;
    for (uint32_t i = 0; i < scaled(10000); ++i) {
      const uint32_t index = random.below32(512);
      PageKey key{seed(), value(area), thread * 512 + index, i + 1};
      if (random.one_in(4)) {
        ASSERT_EQ(engine->free(area, slot(key.slot), 1).code, Errc::ok);
        versions[index].reset();
      } else {
        fill_page(key, PageKind::random, page.data());
        const RunResult stored = engine->store(area, slot(key.slot), 1, page.data());
        ASSERT_TRUE(stored.code == Errc::ok || stored.code == Errc::no_space);
        if (stored.code == Errc::ok) versions[index] = key.version;
        if (stored.code == Errc::no_space) ++refused;
      }
      ASSERT_EQ(engine->load(area, slot(key.slot), 1, page.data()).code, Errc::ok);
      key.version = versions[index].value_or(0);
      ASSERT_TRUE(versions[index] ? is_page(key, PageKind::random, page.data())
                                  : tuck::test::is_zero_page(page.data()));
      if (i % 100 == 0) {
        ASSERT_LE(source.populated_bytes("pool"), options.memory_limit_bytes);
      }
    }
  });
  EXPECT_GT(refused.load(), 0u);
  settle(*engine);
  engine->verify();
  expect_ledger_is_true(*engine, source);
}

}  // namespace
}  // namespace tuck::engine::test

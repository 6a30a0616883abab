// At the memory limit and with a source that fails: the store says no_space, what it would have
// replaced is still there, and all goes on once there is room.
#include <gtest/gtest.h>

#include "tests/engine/harness.h"
#include "tests/support/scale.h"

namespace tuck::engine::test {
namespace {

using tuck::test::seed;

constexpr uint64_t kMiB = 1ull << 20;

TEST(EngineLimit, AFullPoolRefusesAndKeeps) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.memory_limit_bytes = 8 * kMiB;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, 8192);
  Oracle oracle(*engine, area, 8192, seed());
  Random random(seed());
  for (uint32_t round = 0; round < 5; ++round) {
    RunResult stored;
    uint32_t at = random.below32(4096);
    do {
      stored = oracle.store(at, 32, PageKind::mixed);
      at = (at + stored.pages_done) % (8192 - 32);
      ASSERT_LE(source.populated_bytes("pool"), options.memory_limit_bytes);
    } while (stored.code == Errc::ok);
    ASSERT_EQ(stored.code, Errc::no_space);
    // Overwriting fails too, each page the old or the new one; the oracle knows which.
    for (uint32_t i = 0; i < 50; ++i) {
      const RunResult over = oracle.store(random.below32(8160), 16, PageKind::random);
      ASSERT_TRUE(over.code == Errc::ok || over.code == Errc::no_space);
    }
    ASSERT_TRUE(oracle.check_all());
    // What needs no room is still stored.
    ASSERT_EQ(oracle.store(100, 200, PageKind::same_word).code, Errc::ok);
    engine->verify();
    EXPECT_GT(engine->stats().operations.stores_no_space, 0u);
    // Room again.
    oracle.free(random.below32(2000), 6000);
    settle(*engine);
    ASSERT_EQ(oracle.store(3000, 200, PageKind::text).code, Errc::ok);
    ASSERT_TRUE(oracle.check_all());
    engine->verify();
  }
  expect_ledger_is_true(*engine, source);
}

// A client that frees and at once stores as much: nobody has run the background in between.
TEST(EngineLimit, WhatWasFreedIsRoomAtOnce) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.memory_limit_bytes = 4 * kMiB;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, 4096);
  Oracle oracle(*engine, area, 4096, seed());
  uint32_t full = 0;
  while (oracle.store(full, 1, PageKind::random).code == Errc::ok)
    ++full;
  ASSERT_GT(full, 500u);
  for (uint32_t i = 0; i < 200; ++i) {
    const uint32_t at = i * 2 % (full - 8);
    oracle.free(at, 4);
    ASSERT_EQ(oracle.store(at, 3, PageKind::random).code, Errc::ok) << "step " << i;
    ASSERT_TRUE(oracle.check(at, 4));
    static_cast<void>(oracle.store(at + 3, 1, PageKind::random));
  }
  ASSERT_TRUE(oracle.check_all());
  engine->verify();
}

// Small pages all over, freed; then pages of another size. What stood ready in pieces is not lost.
TEST(EngineLimit, AnotherMixOfSizesFindsRoom) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.memory_limit_bytes = 16 * kMiB;
  const auto engine = make_engine(options);
  constexpr uint32_t kSlots = 1u << 16;
  const AreaId area = tuck::engine::test::add_area(*engine, kSlots);
  Oracle oracle(*engine, area, kSlots, seed());
  for (const PageKind kind :
       {PageKind::random, PageKind::text, PageKind::mixed, PageKind::random, PageKind::light}) {
    uint32_t stored = 0;
    while (stored < kSlots && oracle.store(stored, 16, kind).code == Errc::ok)
      stored += 16;
    // Every class keeps a zspage of its own for the last few objects.
    EXPECT_GE(engine->stats().ledger.payload_bytes, 11 * kMiB) << tuck::test::name_of(kind);
    engine->verify();
    // Every other page stays, so that what is freed is in pieces; then these go too.
    for (uint32_t at = 0; at < stored; at += 2)
      oracle.free(at, 1);
    settle(*engine);
    oracle.free(0, kSlots);
  }
}

// A run that stops in the middle says how far it got, and the rest is as before.
TEST(EngineLimit, ARunStopsAtItsFirstFailure) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.memory_limit_bytes = 2 * kMiB;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, 2048);
  Oracle oracle(*engine, area, 2048, seed());
  ASSERT_EQ(oracle.store(0, 2048, PageKind::same_word).code, Errc::ok);
  const RunResult stored = oracle.store(0, 2048, PageKind::random);
  EXPECT_EQ(stored.code, Errc::no_space);
  EXPECT_GT(stored.pages_done, 200u);
  EXPECT_LT(stored.pages_done, 600u);
  EXPECT_TRUE(oracle.check_all());
  engine->verify();
}

void fault_step(Engine& engine, Oracle& oracle, Random& random, const TestSource& source) {
  const uint32_t at = random.below32(oracle.size() - 40);
  const auto pages = static_cast<uint32_t>(random.between(1, 40));
  const uint64_t failures = source.failures();
  switch (random.below(6)) {
    case 0:
      oracle.free(at, pages);
      return;
    case 1:
      engine.maintain();
      return;
    case 2:
      ASSERT_TRUE(oracle.check(at, pages));
      return;
    default:
      break;
  }
  const RunResult stored = random.one_in(4) ? oracle.store_if(at, pages) : oracle.store(at, pages);
  if (stored.code == Errc::ok) {
    ASSERT_EQ(stored.pages_done, pages);
    return;
  }
  ASSERT_EQ(stored.code, Errc::no_space);
  ASSERT_LT(stored.pages_done, pages);
  ASSERT_GT(source.failures(), failures) << "no_space without a reason";
  ASSERT_TRUE(oracle.check(at, pages));
  if (random.one_in(5)) {
    ASSERT_TRUE(oracle.check_all());
    engine.verify();
  }
}

// Fails the n-th populate from the engine's start on: in creating it, adding areas, storing,
// refilling.
void run_failing(uint64_t nth, bool all_that_follow, uint64_t* failures) {
  TestSource source;
  source.fail_populate(nth, all_that_follow);
  EngineOptions options = quiet_options(source);
  options.reserve_bytes = kMiB / 4;
  const auto engine = make_engine(options);
  AreaOptions area_options;
  area_options.slots = 2000;
  auto area = engine->add_area(area_options);
  if (!area) {
    ASSERT_EQ(area.error().code, Errc::no_space);
    ASSERT_GT(source.failures(), 0u);
    source.fail_nothing();
    area = engine->add_area(area_options);
    ASSERT_TRUE(area.ok());
  }
  Oracle oracle(*engine, *area, 2000, seed());
  Random random(seed() + nth);
  for (uint32_t i = 0; i < 150; ++i) {
    fault_step(*engine, oracle, random, source);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "step " << i;
  }
  source.fail_nothing();
  engine->maintain();
  ASSERT_EQ(oracle.store(0, 500).code, Errc::ok);
  ASSERT_TRUE(oracle.check_all());
  settle(*engine);
  engine->verify();
  expect_ledger_is_true(*engine, source);
  *failures = source.failures();
}

TEST(EngineFaults, EachPopulateOnce) {
  for (uint64_t nth = 1;; nth += tuck::test::kSanitized ? 3 : 1) {
    uint64_t failures = 0;
    run_failing(nth, false, &failures);
    ASSERT_FALSE(HasFailure()) << "populate " << nth;
    if (failures == 0) {
      EXPECT_GT(nth, 10u);
      return;
    }
  }
}

TEST(EngineFaults, EachPopulateForGood) {
  for (uint64_t nth = 1; nth <= 40; nth += tuck::test::kSlowdown) {
    uint64_t failures = 0;
    run_failing(nth, true, &failures);
    ASSERT_FALSE(HasFailure()) << "from populate " << nth;
  }
}

TEST(EngineFaults, NoAddressSpace) {
  for (uint64_t nth = 1;; ++nth) {
    TestSource source;
    source.fail_reserve(nth);
    auto engine = Engine::create(quiet_options(source));
    if (!engine) {
      EXPECT_FALSE(engine.error().message.empty());
      EXPECT_TRUE(source.purposes().empty());
      continue;
    }
    AreaOptions options;
    options.slots = 100;
    const auto area = (*engine)->add_area(options);
    if (area) return;
    EXPECT_FALSE(area.error().message.empty());
    EXPECT_TRUE((*engine)->add_area(options).ok()) << "the next attempt works";
  }
}

}  // namespace
}  // namespace tuck::engine::test

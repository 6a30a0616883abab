// Stores that use nothing but what was populated before, and never wait: the engine inside the
// machine that swaps onto it.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/harness.h"

namespace tuck::engine::test {
namespace {

using tuck::test::seed;

constexpr uint32_t kSlots = 4096;

EngineOptions never_waiting(TestSource& source) {
  EngineOptions options = quiet_options(source);
  options.empty_reserve = EmptyReserve::refuse;
  return options;
}

AreaId add_populated_area(Engine& engine) {
  const auto area =
      engine.add_area({.name = "swap", .slots = kSlots, .codec = {}, .populate_table = true});
  EXPECT_TRUE(area.ok());
  return *area;
}

// Stores random pages until one is refused; how many were stored.
uint32_t store_until_refused(Oracle& oracle, uint32_t from, Errc* code, Ticket* ticket = nullptr) {
  for (uint32_t at = from; at < kSlots; ++at) {
    const RunResult stored = oracle.store(at, 1, PageKind::random, ticket);
    if (stored.code != Errc::ok) {
      *code = stored.code;
      return at - from;
    }
  }
  *code = Errc::ok;
  return kSlots - from;
}

TEST(EngineReserve, EmptyMeansNoSpaceAtOnceAndIsCounted) {
  TestSource source;
  const auto engine = make_engine(never_waiting(source));
  const AreaId area = add_populated_area(*engine);
  Oracle oracle(*engine, area, kSlots, seed());
  const uint64_t populates = source.populate_calls();
  Ticket ticket;
  Errc code = Errc::ok;
  const uint32_t stored = store_until_refused(oracle, 0, &code, &ticket);
  // The reserve of 1 MiB, in zspages that need not all come out even.
  EXPECT_GT(stored, 150u);
  EXPECT_LT(stored, 400u);
  EXPECT_EQ(code, Errc::no_space);
  EXPECT_FALSE(ticket.waiting());
  EXPECT_EQ(source.populate_calls(), populates) << "a store asked the system for memory";
  const Stats stats = engine->stats();
  EXPECT_GT(stats.operations.reserve_misses, 0u);
  EXPECT_EQ(stats.operations.stores_no_space, 1u);
  EXPECT_EQ(stats.operations.stores_pending, 0u);
  ASSERT_TRUE(oracle.check_all()) << "reads need no memory";

  // Room comes back with the background's next round.
  engine->maintain();
  EXPECT_GT(store_until_refused(oracle, stored, &code), 150u);
  ASSERT_TRUE(oracle.check_all());
  engine->verify();
}

// What has been freed and waits for its readers, and what a larger class has left, is room.
TEST(EngineReserve, RoomThatIsThereIsLookedForFirst) {
  TestSource source;
  const auto engine = make_engine(never_waiting(source));
  const AreaId area = add_populated_area(*engine);
  Oracle oracle(*engine, area, kSlots, seed());
  Errc code = Errc::ok;
  const uint32_t stored = store_until_refused(oracle, 0, &code);
  for (uint32_t at = 0; at < 50; ++at) {
    oracle.free(at, 1);
    ASSERT_EQ(oracle.store(stored + 1 + at, 1, PageKind::random).code, Errc::ok) << at;
  }
  EXPECT_EQ(oracle.store(stored, 1, PageKind::random).code, Errc::no_space);
  ASSERT_TRUE(oracle.check_all());
  // A page that compresses a little has no zspage of its class.
  oracle.free(50, 1);
  EXPECT_EQ(oracle.store(stored, 1, PageKind::light).code, Errc::ok);
  ASSERT_TRUE(oracle.check_all());
  engine->verify();
}

TEST(EngineReserve, ALimitIsNoPressure) {
  TestSource source;
  EngineOptions options = never_waiting(source);
  options.memory_limit_bytes = 2u << 20;
  options.reserve_bytes = 1u << 20;
  const auto engine = make_engine(options);
  const AreaId area = add_populated_area(*engine);
  Oracle oracle(*engine, area, kSlots, seed());
  Errc code = Errc::ok;
  uint32_t at = 0;
  uint64_t misses = 0;
  for (int round = 0; round < 20; ++round) {
    misses = engine->stats().operations.reserve_misses;
    at += store_until_refused(oracle, at, &code);
    ASSERT_EQ(code, Errc::no_space);
    engine->maintain();
  }
  EXPECT_EQ(engine->stats().operations.reserve_misses, misses)
      << "the limit refused, not the reserve";
  ASSERT_TRUE(oracle.check_all());
  engine->verify();
}

TEST(EngineReserve, AllOfATableIsThereFromTheStart) {
  TestSource source;
  const auto engine = make_engine(never_waiting(source));
  const AreaId area = add_populated_area(*engine);
  EXPECT_EQ(source.populated_bytes("slot table") / 4096, kSlots * 8 / 4096 + 1);
  Oracle oracle(*engine, area, kSlots, seed());
  const uint64_t populates = source.populate_calls();
  // Pages that need no object reach every leaf.
  ASSERT_EQ(oracle.store(0, kSlots, PageKind::zero).code, Errc::ok);
  EXPECT_EQ(source.populate_calls(), populates);
  ASSERT_TRUE(oracle.check_all());
}

TEST(EngineReserve, ATableThatIsNotToBeHadIsAnError) {
  TestSource source;
  const auto engine = make_engine(never_waiting(source));
  source.limit_populated("slot table", 16u << 10);
  const auto area =
      engine->add_area({.name = "swap", .slots = kSlots, .codec = {}, .populate_table = true});
  ASSERT_FALSE(area.ok());
  EXPECT_EQ(area.error().code, Errc::no_space);
  source.limit_populated("slot table", UINT64_MAX);
  EXPECT_TRUE(
      engine->add_area({.name = "swap", .slots = kSlots, .codec = {}, .populate_table = true})
          .ok());
}

}  // namespace
}  // namespace tuck::engine::test

// Who frees what was retired, and who must not.
#include <gtest/gtest.h>

#include "tests/engine/harness.h"

namespace tuck::engine::test {
namespace {

using tuck::test::seed;

uint64_t objects(const Engine& engine) {
  uint64_t count = 0;
  for (const auto& line : engine.stats().ledger.classes)
    count += line.objects;
  return count;
}

// A load may run in a signal handler that has interrupted a free: it must leave the allocator
// alone, also where another call has left it a line full of retired objects.
TEST(EnginePins, LoadsFreeNothing) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 1024);
  Oracle oracle(*engine, area, 1024, seed());
  ASSERT_EQ(oracle.store(0, 512, PageKind::text).code, Errc::ok);
  engine->quiesce();
  ASSERT_EQ(objects(*engine), 512u);
  {
    // Holds back what the free retires.
    const Pin pin = engine->pin();
    oracle.free(0, 400);
  }
  ASSERT_EQ(engine->stats().retired_objects, 400u);
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(oracle.check(500, 1));
  EXPECT_EQ(engine->stats().retired_objects, 400u);
  EXPECT_EQ(objects(*engine), 512u);
  engine->quiesce();
  EXPECT_EQ(engine->stats().retired_objects, 0u);
  EXPECT_EQ(objects(*engine), 112u);
  engine->verify();
}

// With the background thread at its first refill of a large reserve.
TEST(EnginePins, VerifyWaitsForTheBackground) {
  for (int round = 0; round < 5; ++round) {
    EngineOptions options;
    options.reserve_bytes = 64u << 20;
    options.memory_limit_bytes = 256u << 20;
    const auto engine = make_engine(options);
    const AreaId area = tuck::engine::test::add_area(*engine, 16384);
    Oracle oracle(*engine, area, 16384, seed());
    for (uint32_t at = 0; at < 8192; at += 1024) {
      ASSERT_EQ(oracle.store(at, 1024, PageKind::random).code, Errc::ok);
      engine->verify();
    }
    oracle.free(0, 8192);
    for (int i = 0; i < 20; ++i)
      engine->verify();
  }
}

}  // namespace
}  // namespace tuck::engine::test

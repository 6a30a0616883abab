// Long random histories in one thread, each byte of each page compared with the oracle.
#include <gtest/gtest.h>

#include <array>

#include "tests/engine/harness.h"
#include "tests/support/scale.h"

namespace tuck::engine::test {
namespace {

using tuck::test::scaled;
using tuck::test::seed;

constexpr uint32_t kSlots = 700;  // a leaf and a part of one

constexpr std::array<CodecSetting, 12> kCodecs = {{{CodecKind::lz4, 1},
                                                   {CodecKind::lz4, 8},
                                                   {CodecKind::lz4, 65536},
                                                   {CodecKind::none, 0},
                                                   {CodecKind::zstd, 1},
                                                   {CodecKind::zstd, 3},
                                                   {CodecKind::zstd, -1},
                                                   {CodecKind::zstd, -5},
                                                   {CodecKind::zstd, -131072},
                                                   {CodecKind::zstd, 9},
                                                   {CodecKind::zstd, 19},
                                                   {CodecKind::zstd, 22}}};

uint32_t run_length(Random& random) {
  switch (random.below(8)) {
    case 0:
      return static_cast<uint32_t>(random.between(17, 200));
    case 1:
    case 2:
      return static_cast<uint32_t>(random.between(2, 40));
    default:
      return static_cast<uint32_t>(random.between(1, 4));
  }
}

void step(Engine& engine, AreaId area, Oracle& oracle, Random& random) {
  const uint32_t at = random.below32(oracle.size());
  const uint32_t pages = std::min(run_length(random), oracle.size() - at);
  switch (random.below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7: {
      const RunResult stored = oracle.store(at, pages);
      ASSERT_EQ(stored.code, Errc::ok);
      ASSERT_EQ(stored.pages_done, pages);
      break;
    }
    case 8:
    case 9: {
      const RunResult stored = oracle.store_if(at, pages);
      ASSERT_EQ(stored.code, Errc::ok);
      ASSERT_EQ(stored.pages_done, pages);
      break;
    }
    case 10:
    case 11:
    case 12:
    case 13:
      oracle.free(at, pages);
      break;
    case 14:
      ASSERT_EQ(engine.set_codec(area, kCodecs[random.below(kCodecs.size())]), std::nullopt);
      break;
    case 15:
      oracle.check_extents(at, pages, random.between(1, 20));
      break;
    case 16:
      engine.maintain();
      break;
    default:
      ASSERT_TRUE(oracle.check(at, pages));
      break;
  }
}

TEST(EngineModel, TwoAreasAllOperations) {
  for (uint32_t round = 0; round < 4; ++round) {
    TestSource source;
    const auto engine = make_engine(quiet_options(source));
    Random random(seed() + round);
    const std::array<AreaId, 2> areas = {tuck::engine::test::add_area(*engine, kSlots),
                                         tuck::engine::test::add_area(*engine, kSlots)};
    std::array<Oracle, 2> oracles = {Oracle(*engine, areas[0], kSlots, seed()),
                                     Oracle(*engine, areas[1], kSlots, seed())};
    for (uint32_t i = 0; i < scaled(3000); ++i) {
      const uint64_t which = random.below(2);
      step(*engine, areas[which], oracles[which], random);
      ASSERT_FALSE(HasFailure()) << "step " << i;
      if (i % 500 == 0) engine->verify();
    }
    settle(*engine);
    engine->verify();
    expect_ledger_is_true(*engine, source);
    const Stats stats = engine->stats();
    for (size_t i = 0; i < areas.size(); ++i) {
      ASSERT_TRUE(oracles[i].check_all());
      oracles[i].check_content(stats.areas[i].content);
      oracles[i].check_extents(0, kSlots, kSlots);
    }
    EXPECT_EQ(stats.operations.loads_corrupt, 0u);
    // One area goes; the other is as it was.
    ASSERT_EQ(engine->remove_area(areas[0]), std::nullopt);
    settle(*engine);
    engine->verify();
    ASSERT_TRUE(oracles[1].check_all());
    oracles[1].free(0, kSlots);
    settle(*engine);
    engine->verify();
    EXPECT_EQ(engine->stats().ledger.payload_bytes, 0u);
    expect_ledger_is_true(*engine, source);
  }
}

// Every kind of page under every codec: back byte for byte, also after the codec has been changed.
TEST(EngineModel, EveryKindUnderEveryCodec) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 4096);
  Oracle oracle(*engine, area, 4096, seed());
  uint32_t at = 0;
  for (const CodecSetting codec : kCodecs) {
    ASSERT_EQ(engine->set_codec(area, codec), std::nullopt) << to_string(codec);
    for (uint32_t kind = 0; kind < tuck::test::kPageKinds; ++kind) {
      const RunResult stored = oracle.store(at, 20, static_cast<PageKind>(kind));
      ASSERT_EQ(stored.code, Errc::ok);
      at += 20;
    }
  }
  ASSERT_TRUE(oracle.check_all());
  engine->verify();
  oracle.check_content(engine->stats().content);
}

// From one zstd level to another on the same contexts, with pages that did not get smaller in
// between.
TEST(EngineModel, CodecsChangeAfterIncompressiblePages) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 64);
  Oracle oracle(*engine, area, 64, seed());
  for (const CodecSetting from : kCodecs) {
    for (const CodecSetting to : kCodecs) {
      ASSERT_EQ(engine->set_codec(area, from), std::nullopt);
      ASSERT_EQ(oracle.store(0, 8, PageKind::random).code, Errc::ok);
      ASSERT_EQ(engine->set_codec(area, to), std::nullopt);
      ASSERT_EQ(oracle.store(8, 8, PageKind::text).code, Errc::ok);
      ASSERT_TRUE(oracle.check(0, 16)) << to_string(from) << " to " << to_string(to);
    }
  }
}

TEST(EngineModel, SameFilledPagesCostNoObject) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 512);
  Oracle oracle(*engine, area, 512, seed());
  for (const PageKind kind : {PageKind::zero, PageKind::same_word, PageKind::same_half}) {
    ASSERT_EQ(oracle.store(0, 512, kind).code, Errc::ok);
    settle(*engine);
    const Stats stats = engine->stats();
    EXPECT_EQ(stats.ledger.payload_bytes, 0u);
    EXPECT_EQ(stats.ledger.header_bytes, 0u);
    EXPECT_EQ(stats.content.pages_same_filled, 512u);
    EXPECT_EQ(stats.content.bytes_compressed, 0u);
    ASSERT_TRUE(oracle.check_all());
  }
  // A word that no entry can hold is compressed like any other page.
  ASSERT_EQ(oracle.store(0, 512, PageKind::same_other).code, Errc::ok);
  EXPECT_EQ(engine->stats().content.pages_compressed, 512u);
  ASSERT_TRUE(oracle.check_all());
}

TEST(EngineModel, IncompressiblePagesAreKeptRaw) {
  for (const CodecSetting codec : kCodecs) {
    TestSource source;
    const auto engine = make_engine(quiet_options(source));
    const AreaId area = tuck::engine::test::add_area(*engine, 512, codec);
    Oracle oracle(*engine, area, 512, seed());
    ASSERT_EQ(oracle.store(0, 512, PageKind::random).code, Errc::ok);
    const Stats stats = engine->stats();
    EXPECT_EQ(stats.content.pages_incompressible, 512u);
    EXPECT_EQ(stats.content.bytes_compressed, 512u * kPageSize);
    // At their full size and hardly more: header, class and tail within 3 %.
    EXPECT_LE(stats.ledger.pool_bytes() - stats.ledger.reserve_bytes,
              (512 + 64) * uint64_t{kPageSize} * 103 / 100);
    ASSERT_TRUE(oracle.check_all());
    engine->verify();
  }
}

TEST(EngineModel, CompressionPays) {
  for (const CodecSetting codec : {CodecSetting{CodecKind::lz4, 1}, {CodecKind::zstd, 1}}) {
    TestSource source;
    const auto engine = make_engine(quiet_options(source));
    const AreaId area = tuck::engine::test::add_area(*engine, 2048, codec);
    Oracle oracle(*engine, area, 2048, seed());
    ASSERT_EQ(oracle.store(0, 2048, PageKind::text).code, Errc::ok);
    const Stats stats = engine->stats();
    EXPECT_EQ(stats.content.pages_compressed, 2048u);
    EXPECT_LE(stats.content.bytes_compressed, 2048u * kPageSize * 6 / 10);
  }
}

}  // namespace
}  // namespace tuck::engine::test

// Arguments at their bounds, areas coming and going, codec settings, figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>

#include "tests/engine/harness.h"
#include "tests/support/resident.h"
#include "tests/support/scale.h"

namespace tuck::engine::test {
namespace {

using tuck::test::seed;

TEST(Engine, UntouchedSlotsLoadAsZeroes) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 1000);
  const Oracle oracle(*engine, area, 1000, seed());
  EXPECT_TRUE(oracle.check_all());
  std::array<Extent, 4> extents;
  uint32_t covered = 0;
  EXPECT_EQ(engine->extents(area, slot(0), 1000, extents, &covered), 1u);
  EXPECT_EQ(covered, 1000u);
  EXPECT_EQ(extents[0].pages, 1000u);
  EXPECT_EQ(extents[0].state, SlotState::empty);
  EXPECT_EQ(engine->free(area, slot(0), 1000).code, Errc::ok);
  EXPECT_EQ(engine->stats().content.pages_stored, 0u);
}

TEST(Engine, RunsOfNothingDoNothing) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 10);
  std::array<std::byte, kPageSize> page{};
  for (const uint32_t at : {0u, 5u, 10u}) {
    EXPECT_EQ(engine->store(area, slot(at), 0, page.data()).code, Errc::ok);
    EXPECT_EQ(engine->load(area, slot(at), 0, page.data()).code, Errc::ok);
    EXPECT_EQ(engine->free(area, slot(at), 0).code, Errc::ok);
    uint32_t covered = 7;
    EXPECT_EQ(engine->extents(area, slot(at), 0, {}, &covered), 0u);
    EXPECT_EQ(covered, 0u);
  }
  EXPECT_EQ(engine->stats().content.pages_stored, 0u);
}

TEST(Engine, OutOfRangeChangesNothing) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 100);
  Oracle oracle(*engine, area, 100, seed());
  ASSERT_EQ(oracle.store(0, 100).code, Errc::ok);
  struct Range {
    uint32_t at;
    uint32_t pages;
  };
  const Pages page(size_t{101} * kPageSize, std::byte{0x77});
  Pages out(size_t{101} * kPageSize, std::byte{0x66});
  for (const Range range : {Range{100, 1}, Range{99, 2}, Range{0, 101}, Range{50, 51},
                            Range{UINT32_MAX, 1}, Range{UINT32_MAX, 2}, Range{1, UINT32_MAX},
                            Range{UINT32_MAX, UINT32_MAX}, Range{0, UINT32_MAX}}) {
    const auto expect_refused = [&](RunResult result, const char* call) {
      EXPECT_EQ(result.code, Errc::out_of_range) << call << range.at << " + " << range.pages;
      EXPECT_EQ(result.pages_done, 0u) << call << range.at << " + " << range.pages;
    };
    expect_refused(engine->store(area, slot(range.at), range.pages, page.data()), "store ");
    expect_refused(engine->load(area, slot(range.at), range.pages, out.data()), "load ");
    expect_refused(engine->free(area, slot(range.at), range.pages), "free ");
    uint32_t covered = 7;
    std::array<Extent, 4> extents;
    EXPECT_EQ(engine->extents(area, slot(range.at), range.pages, extents, &covered), 0u);
    EXPECT_EQ(covered, 0u);
    const Pin pin = engine->pin();
    Entry seen;
    expect_refused(engine->load(pin, area, slot(range.at), range.pages, out.data(), &seen),
                   "pinned load ");
    expect_refused(engine->store_if(pin, area, slot(range.at), range.pages, page.data(), &seen),
                   "store_if ");
  }
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](std::byte b) { return b == std::byte{0x66}; }))
      << "a refused load wrote to the caller's memory";
  EXPECT_TRUE(oracle.check_all());
  for (const uint16_t nobody : std::initializer_list<uint16_t>{1, 4095, 4096, 65535}) {
    EXPECT_EQ(engine->store(AreaId{nobody}, slot(0), 1, page.data()).code, Errc::out_of_range);
    EXPECT_EQ(engine->load(AreaId{nobody}, slot(0), 1, out.data()).code, Errc::out_of_range);
    EXPECT_EQ(engine->free(AreaId{nobody}, slot(0), 1).code, Errc::out_of_range);
    EXPECT_NE(engine->set_codec(AreaId{nobody}, {}), std::nullopt);
    EXPECT_NE(engine->remove_area(AreaId{nobody}), std::nullopt);
  }
}

TEST(Engine, AreasOfImpossibleSizesAreRefused) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  for (const uint64_t slots : std::initializer_list<uint64_t>{0, (1ull << 32) + 1, UINT64_MAX}) {
    AreaOptions options;
    options.slots = slots;
    const auto area = engine->add_area(options);
    ASSERT_FALSE(area.ok());
    EXPECT_FALSE(area.error().message.empty());
  }
}

TEST(Engine, CodecsThatAreNoneAreRefused) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 64);
  Oracle oracle(*engine, area, 64, seed());
  for (const CodecSetting codec :
       {CodecSetting{CodecKind::zstd, 0}, CodecSetting{CodecKind::zstd, 23},
        CodecSetting{CodecKind::zstd, -131073}, CodecSetting{CodecKind::lz4, 0},
        CodecSetting{CodecKind::lz4, -1}, CodecSetting{CodecKind::lz4, 65537},
        CodecSetting{static_cast<CodecKind>(3), 1}, CodecSetting{static_cast<CodecKind>(255), 1}}) {
    EXPECT_NE(engine->set_codec(area, codec), std::nullopt)
        << static_cast<int>(codec.kind) << ":" << codec.level;
    AreaOptions options;
    options.slots = 64;
    options.codec = codec;
    EXPECT_FALSE(engine->add_area(options).ok());
    // The area goes on with what it had.
    ASSERT_EQ(oracle.store(0, 64).code, Errc::ok);
    ASSERT_TRUE(oracle.check_all());
  }
}

TEST(Engine, ManyAreasComeAndGo) {
  EngineOptions engine_options;
  engine_options.background_thread = false;
  const auto engine = make_engine(engine_options);
  std::vector<AreaId> areas;
  AreaOptions options;
  options.slots = 3;
  for (uint32_t i = 0; i < 4096; ++i) {
    const auto area = engine->add_area(options);
    ASSERT_TRUE(area.ok()) << i << ": " << area.error().message;
    areas.push_back(*area);
  }
  EXPECT_FALSE(engine->add_area(options).ok()) << "more than 4096";
  // The last and the first area's pages are told apart.
  Oracle first(*engine, areas.front(), 3, seed());
  Oracle last(*engine, areas.back(), 3, seed());
  ASSERT_EQ(first.store(0, 3, PageKind::text).code, Errc::ok);
  ASSERT_EQ(last.store(0, 3, PageKind::text).code, Errc::ok);
  EXPECT_TRUE(first.check_all());
  EXPECT_TRUE(last.check_all());
  ASSERT_EQ(engine->remove_area(areas[17]), std::nullopt);
  EXPECT_NE(engine->remove_area(areas[17]), std::nullopt);
  const auto again = engine->add_area(options);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, areas[17]) << "its number is free again";
  Oracle fresh(*engine, *again, 3, seed());
  EXPECT_TRUE(fresh.check_all());
  for (const AreaId area : areas)
    EXPECT_EQ(engine->remove_area(area), std::nullopt);
  settle(*engine);
  engine->verify();
  EXPECT_EQ(engine->stats().slot_table_bytes, 0u);
  EXPECT_EQ(engine->stats().ledger.payload_bytes, 0u);
}

// 2^32 slots: the ends of the area, and what it costs untouched.
TEST(Engine, TheLargestArea) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  const auto engine = make_engine(options);
  const uint64_t before = source.populated_bytes();
  const uint64_t resident_before = source.resident_bytes();
  const AreaId area = tuck::engine::test::add_area(*engine, 1ull << 32);
  constexpr uint64_t kMost = (1ull << 32) / 10;  // 0.1 byte a slot
  EXPECT_LT(engine->stats().slot_table_bytes, kMost);
  EXPECT_LT(source.populated_bytes() - before, kMost);
  EXPECT_LT(source.resident_bytes() - resident_before, kMost);

  Pages data(size_t{20} * kPageSize);
  Pages out(data.size());
  for (const uint64_t at :
       std::initializer_list<uint64_t>{0, (1ull << 31) - 10, (1ull << 32) - 20}) {
    for (uint32_t i = 0; i < 20; ++i) {
      const PageKey key{seed(), value(area), static_cast<uint32_t>(at) + i, i};
      fill_page(key, PageKind::text, data.data() + size_t{i} * kPageSize);
    }
    ASSERT_EQ(engine->store(area, slot(at), 20, data.data()).code, Errc::ok);
    ASSERT_EQ(engine->load(area, slot(at), 20, out.data()).code, Errc::ok);
    EXPECT_EQ(data, out);
  }
  // One page behind the end, which is slot 0 modulo 2^32.
  EXPECT_EQ(engine->load(area, slot((1ull << 32) - 1), 2, out.data()).code, Errc::out_of_range);
  EXPECT_EQ(engine->load(area, slot((1ull << 32) - 1), 1, out.data()).code, Errc::ok);
  EXPECT_EQ(engine->stats().content.pages_stored, 60u);
  // A look and a free over nearly all of it pass by what was never touched.
  std::array<Extent, 8> extents;
  uint32_t covered = 0;
  EXPECT_EQ(engine->extents(area, slot(0), UINT32_MAX, extents, &covered), 5u);
  EXPECT_EQ(covered, UINT32_MAX);
  EXPECT_EQ(engine->free(area, slot(1), UINT32_MAX).code, Errc::ok);
  EXPECT_EQ(engine->stats().content.pages_stored, 1u);
  settle(*engine);
  engine->verify();
}

TEST(Engine, CountsWhatItDid) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 600, {}, "counted");
  Oracle oracle(*engine, area, 600, seed());
  ASSERT_EQ(oracle.store(0, 50).code, Errc::ok);
  ASSERT_EQ(oracle.store(25, 50).code, Errc::ok);
  ASSERT_TRUE(oracle.check(0, 100));
  oracle.free(50, 550);
  const Stats stats = engine->stats();
  EXPECT_EQ(stats.operations.pages_stored, 100u);
  EXPECT_EQ(stats.operations.pages_loaded, 75u);
  EXPECT_EQ(stats.operations.pages_loaded_empty, 25u);
  EXPECT_EQ(stats.operations.pages_freed, 25u) << "empty slots were not pages";
  ASSERT_EQ(stats.areas.size(), 1u);
  EXPECT_EQ(stats.areas[0].name, "counted");
  EXPECT_EQ(stats.areas[0].slots, 600u);
  EXPECT_EQ(stats.content.pages_stored, 50u);
}

TEST(Engine, FreedMemoryGoesBackToTheSystem) {
  TestSource source;
  const auto engine = make_engine(quiet_options(source));
  const AreaId area = tuck::engine::test::add_area(*engine, 8192);
  Oracle oracle(*engine, area, 8192, seed());
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(oracle.store(0, 8192, PageKind::mixed).code, Errc::ok);
    const uint64_t full = source.resident_bytes("pool");
    EXPECT_GT(full, 12u << 20);
    oracle.free(0, 8192);
    settle(*engine);
    EXPECT_LT(source.resident_bytes("pool"), 2u << 20);
    expect_ledger_is_true(*engine, source);
    engine->verify();
    EXPECT_EQ(engine->stats().retired_objects, 0u);
  }
}

TEST(Engine, TheBackgroundGivesMemoryBackByItself) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.background_thread = true;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, 8192);
  Oracle oracle(*engine, area, 8192, seed());
  ASSERT_EQ(oracle.store(0, 8192, PageKind::mixed).code, Errc::ok);
  oracle.free(0, 8192);
  // Ends by the test's time limit if it never does.
  while (source.populated_bytes("pool") > 2u << 20)
    std::this_thread::yield();
  EXPECT_EQ(engine->stats().content.pages_stored, 0u);
}

TEST(EngineOptions, ThatMakeNoSenseAreRefused) {
  EngineOptions options;
  options.memory_limit_bytes = 4096;
  const auto engine = Engine::create(options);
  ASSERT_FALSE(engine.ok());
  EXPECT_FALSE(engine.error().message.empty());
}

TEST(CodecSetting, IsReadAndWritten) {
  struct Case {
    const char* text;
    CodecSetting codec;
  };
  for (const Case& c :
       {Case{"none", {CodecKind::none, 0}}, Case{"lz4", {CodecKind::lz4, 1}},
        Case{"lz4:7", {CodecKind::lz4, 7}}, Case{"zstd:1", {CodecKind::zstd, 1}},
        Case{"lz4:65536", {CodecKind::lz4, 65536}}, Case{"zstd:22", {CodecKind::zstd, 22}},
        Case{"zstd:-131072", {CodecKind::zstd, -131072}}}) {
    const auto codec = parse_codec(c.text);
    ASSERT_TRUE(codec.ok()) << c.text;
    EXPECT_EQ(*codec, c.codec);
    EXPECT_EQ(*parse_codec(to_string(*codec)), *codec);
  }
  EXPECT_EQ(parse_codec("zstd")->kind, CodecKind::zstd);
  for (const char* text :
       {"",         ":",         "lzo",          "LZ4",    "lz4:",   "lz4:0",
        "lz4:-1",   "lz4:65537", "lz4:1x",       "lz4: 1", "lz4:1 ", "zstd:",
        "zstd:0",   "zstd:23",   "zstd:-131073", "none:1", "none:",  "zstd:99999999999",
        "zstd:1:2", "lz4hc",     "zstd:+3"}) {
    const auto codec = parse_codec(text);
    ASSERT_FALSE(codec.ok()) << text;
    EXPECT_EQ(codec.error().code, Errc::invalid);
    EXPECT_NE(codec.error().message.find(std::string("'") + text + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace tuck::engine::test

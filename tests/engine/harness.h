// An engine with an area or two, and an oracle that knows what each slot holds.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/support/pages.h"
#include "tests/support/seed.h"
#include "tests/support/test_source.h"

namespace tuck::engine::test {

using tuck::test::PageKey;
using tuck::test::PageKind;
using tuck::test::Pages;
using tuck::test::Random;
using tuck::test::TestSource;

inline std::unique_ptr<Engine> make_engine(const EngineOptions& options) {
  auto engine = Engine::create(options);
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  return std::move(*engine);
}

inline AreaId add_area(Engine& engine, uint64_t slots, CodecSetting codec = {},
                       const std::string& name = "area") {
  AreaOptions options;
  options.name = name;
  options.slots = slots;
  options.codec = codec;
  const auto area = engine.add_area(options);
  if (!area) {
    ADD_FAILURE() << area.error().message;
    std::abort();
  }
  return *area;
}

inline SlotIndex slot(uint64_t number) {
  return SlotIndex{static_cast<uint32_t>(number)};
}

// No background thread: the test decides when anything happens.
inline EngineOptions quiet_options(TestSource& source) {
  EngineOptions options;
  options.memory = &source;
  options.background_thread = false;
  options.reserve_bytes = 1u << 20;
  return options;
}

inline void settle(Engine& engine) {
  engine.quiesce();
  for (int i = 0; i < 3; ++i)
    engine.maintain();
}

// One area's expected contents: a version and a kind a slot; the bytes follow from them.
class Oracle {
 public:
  Oracle(Engine& engine, AreaId area, uint32_t slots, uint64_t seed)
      : engine_(engine), area_(area), seed_(seed), slots_(slots) {}

  PageKey key(uint32_t at, uint32_t version) const {
    return PageKey{seed_, value(area_), at, version};
  }
  uint32_t next_version() { return ++version_ % tuck::test::kVersions; }

  // Stores a run of new versions and notes what the engine says has come of it.
  RunResult store(uint32_t at, uint32_t pages, std::optional<PageKind> kind = {},
                  Ticket* ticket = nullptr) {
    const auto [data, wanted] = make_run(at, pages, kind);
    const RunResult result = engine_.store(area_, slot(at), pages, data.data(), ticket);
    note(at, result.pages_done, wanted);
    return result;
  }
  // A read-modify-write of a run in one pin.
  RunResult store_if(uint32_t at, uint32_t pages) {
    const auto [data, wanted] = make_run(at, pages, {});
    Pages before(size_t{pages} * kPageSize);
    std::vector<Entry> seen(pages);
    const Pin pin = engine_.pin();
    const RunResult loaded = engine_.load(pin, area_, slot(at), pages, before.data(), seen.data());
    EXPECT_EQ(loaded.code, Errc::ok);
    const RunResult result =
        engine_.store_if(pin, area_, slot(at), pages, data.data(), seen.data());
    note(at, result.pages_done, wanted);
    return result;
  }
  void free(uint32_t at, uint32_t pages) {
    const RunResult result = engine_.free(area_, slot(at), pages);
    EXPECT_EQ(result.code, Errc::ok);
    EXPECT_EQ(result.pages_done, pages);
    for (uint32_t i = 0; i < pages; ++i)
      slots_[at + i] = {};
  }

  // Loads a run and compares each byte.
  bool check(uint32_t at, uint32_t pages) const {
    Pages out(size_t{pages} * kPageSize, std::byte{0xa5});
    const RunResult result = engine_.load(area_, slot(at), pages, out.data());
    EXPECT_EQ(result.code, Errc::ok) << name_of(result.code);
    EXPECT_EQ(result.pages_done, pages);
    for (uint32_t i = 0; i < pages; ++i) {
      if (is_as_expected(at + i, out.data() + size_t{i} * kPageSize)) continue;
      ADD_FAILURE() << "slot " << at + i << " is wrong";
      return false;
    }
    return true;
  }
  bool check_all() const {
    for (uint32_t at = 0; at < slots_.size(); at += 64) {
      if (!check(at, std::min<uint32_t>(64, static_cast<uint32_t>(slots_.size()) - at))) {
        return false;
      }
    }
    return true;
  }
  // What extents() says against the oracle: all covered, merged, and of the right states.
  void check_extents(uint32_t at, uint32_t pages, size_t room) const;
  // What the statistics say of this area.
  void check_content(const ContentStats& content) const;

  uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
  bool is_stored(uint32_t at) const { return slots_[at].has_value(); }
  uint64_t stored() const {
    return static_cast<uint64_t>(
        std::count_if(slots_.begin(), slots_.end(), [](const auto& s) { return s.has_value(); }));
  }

 private:
  struct Content {
    uint32_t version = 0;
    PageKind kind = PageKind::zero;
  };
  struct Run {
    Pages data;
    std::vector<Content> wanted;
  };

  Run make_run(uint32_t at, uint32_t pages, std::optional<PageKind> kind) {
    Run run{Pages(size_t{pages} * kPageSize), std::vector<Content>(pages)};
    for (uint32_t i = 0; i < pages; ++i) {
      const PageKey page = key(at + i, next_version());
      run.wanted[i] = Content{page.version, kind.value_or(kind_for(page))};
      fill_page(page, run.wanted[i].kind, run.data.data() + size_t{i} * kPageSize);
    }
    return run;
  }
  void note(uint32_t at, uint32_t pages, const std::vector<Content>& wanted) {
    for (uint32_t i = 0; i < pages; ++i)
      slots_[at + i] = wanted[i];
  }
  bool is_as_expected(uint32_t at, const std::byte* page) const {
    if (!slots_[at]) return tuck::test::is_zero_page(page);
    return is_page(key(at, slots_[at]->version), slots_[at]->kind, page);
  }
  SlotState state_of(uint32_t at) const {
    if (!slots_[at]) return SlotState::empty;
    switch (slots_[at]->kind) {
      case PageKind::zero:
        return SlotState::zero;
      case PageKind::same_word:
      case PageKind::same_half:
        return SlotState::same_filled;
      default:
        return SlotState::stored;
    }
  }

  Engine& engine_;
  const AreaId area_;
  const uint64_t seed_;
  uint32_t version_ = 0;
  std::vector<std::optional<Content>> slots_;
};

inline void Oracle::check_extents(uint32_t at, uint32_t pages, size_t room) const {
  std::vector<Extent> extents(room);
  uint32_t covered = 0;
  const size_t count = engine_.extents(area_, slot(at), pages, extents, &covered);
  ASSERT_LE(count, room);
  ASSERT_LE(covered, pages);
  uint32_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    ASSERT_GT(extents[i].pages, 0u);
    ASSERT_LE(extents[i].pages, pages - done);
    for (uint32_t p = 0; p < extents[i].pages; ++p) {
      ASSERT_EQ(extents[i].state, state_of(at + done + p)) << "slot " << at + done + p;
    }
    if (i > 0) {
      ASSERT_NE(extents[i].state, extents[i - 1].state) << "neighbours of one state";
    }
    done += extents[i].pages;
  }
  ASSERT_EQ(done, covered);
  // It ends early only when the room does.
  if (covered < pages) {
    ASSERT_EQ(count, room);
  }
}

inline void Oracle::check_content(const ContentStats& content) const {
  uint64_t same_filled = 0;
  uint64_t objects = 0;
  uint64_t random = 0;
  for (uint32_t at = 0; at < size(); ++at) {
    const SlotState state = state_of(at);
    same_filled += state == SlotState::zero || state == SlotState::same_filled ? 1u : 0u;
    objects += state == SlotState::stored ? 1u : 0u;
    random += slots_[at] && slots_[at]->kind == PageKind::random ? 1u : 0u;
  }
  EXPECT_EQ(content.pages_stored, same_filled + objects);
  EXPECT_EQ(content.pages_same_filled, same_filled);
  EXPECT_EQ(content.pages_compressed + content.pages_incompressible, objects);
  EXPECT_GE(content.pages_incompressible, random);
  EXPECT_LE(content.bytes_compressed, objects * kPageSize);
}

// The pool's figures against what the source gave and what the kernel says of it.
inline void expect_ledger_is_true(Engine& engine, const TestSource& source) {
  const Stats stats = engine.stats();
  EXPECT_EQ(stats.ledger.resident_bytes() + stats.slot_table_bytes, source.populated_bytes());
  EXPECT_EQ(source.populated_bytes(), source.resident_bytes());
  if (stats.retired_objects == 0) {
    EXPECT_EQ(stats.ledger.payload_bytes, stats.content.bytes_compressed);
  }
}

}  // namespace tuck::engine::test

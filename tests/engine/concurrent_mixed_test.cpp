// Eight threads, every call that the engine has, on a few slots of three groups. What each call saw
// and said must be explained, slot by slot, by one order of all calls that respects their times:
// pages to the byte, states of extents, and why a store_if went through or did not.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "tests/engine/harness.h"
#include "tests/support/operation_history.h"
#include "tests/support/register_history.h"
#include "tests/support/scale.h"
#include "tests/support/threads.h"

namespace tuck::engine::test {
namespace {

using tuck::test::Clock;
using tuck::test::kVersions;
using tuck::test::Operation;
using tuck::test::run_threads;
using tuck::test::scaled;
using tuck::test::seed;
using OperationKind = tuck::test::Operation::Kind;

constexpr uint32_t kThreads = 8;
constexpr uint32_t kSlots = 40;

// What a slot holds as the judge's value: its state, and the version where it has one.
constexpr unsigned kStateShift = 28;
constexpr uint32_t kStateMask = ~0u << kStateShift;
constexpr uint32_t kEmpty = static_cast<uint32_t>(SlotState::empty) << kStateShift;
constexpr uint32_t kZero = static_cast<uint32_t>(SlotState::zero) << kStateShift;
static_assert(kEmpty == 0 && kVersions <= 1u << kStateShift);

uint32_t value_of(const PageKey& key) {
  switch (kind_for(key)) {
    case PageKind::zero:
      return kZero;
    case PageKind::same_word:
    case PageKind::same_half:
      return static_cast<uint32_t>(SlotState::same_filled) << kStateShift | key.version;
    default:
      return static_cast<uint32_t>(SlotState::stored) << kStateShift | key.version;
  }
}

// What all threads share.
struct Field {
  Engine& engine;
  AreaId area;
  Clock clock{};
  std::atomic<uint32_t> versions{1};
  // Stored pages that there was no room for.
  std::atomic<uint64_t> refused{0};
};

class Player {
 public:
  Player(Field& field, uint32_t lane)
      : field_(field), lane_(lane), random_(tuck::test::mix(seed(), lane)), log_(kSlots) {}

  const std::vector<Operation>& log(uint32_t at) const { return log_[at]; }

  void play(uint32_t steps) {
    for (uint32_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i)
      step();
  }
  void load(uint32_t at, uint32_t pages) {
    Pages out(size_t{pages} * kPageSize);
    const uint64_t begin = field_.clock.now();
    const RunResult loaded = field_.engine.load(field_.area, slot(at), pages, out.data());
    const uint64_t end = field_.clock.now();
    ASSERT_EQ(loaded.code, Errc::ok) << name_of(loaded.code);
    for (uint32_t i = 0; i < pages; ++i)
      note(at + i, seen(at + i, out.data() + size_t{i} * kPageSize), begin, end);
  }

 private:
  void step() {
    // Mostly the same few slots; runs that cross the groups' borders now and then.
    const auto pages = random_.one_in(3) ? static_cast<uint32_t>(random_.between(2, 6)) : 1u;
    const uint32_t at =
        random_.one_in(2) ? 13 + random_.below32(5) : random_.below32(kSlots - pages + 1);
    switch (random_.below(32)) {
      case 0:
        return change_codec();
      case 1:
        return field_.engine.maintain();
      case 2:
        return field_.engine.quiesce();
      case 3: {
        const Stats stats = field_.engine.stats();
        EXPECT_FALSE(stats.areas.empty());
        return;
      }
      case 4:
      case 5:
      case 6:
      case 7:
        return free(at, pages);
      case 8:
      case 9:
      case 10:
        return extents(at, pages);
      default:
        break;
    }
    if (random_.one_in(3)) return load(at, pages);
    if (random_.one_in(2)) return store(at, pages);
    store_if(at, pages);
  }

  void change_codec() {
    constexpr std::array<CodecSetting, 5> kCodecs = {{{CodecKind::lz4, 1},
                                                      {CodecKind::lz4, 1},
                                                      {CodecKind::lz4, 64},
                                                      {CodecKind::none, 0},
                                                      {CodecKind::zstd, 1}}};
    EXPECT_EQ(field_.engine.set_codec(field_.area, kCodecs[random_.below(kCodecs.size())]),
              std::nullopt);
  }

  // --- Pages and values --------------------------------------------------------------------------

  PageKey key(uint32_t at, uint32_t version) const {
    return PageKey{seed(), value(field_.area), at, version};
  }
  // New pages for a run, and the values that they are.
  std::vector<uint32_t> make_run(uint32_t at, uint32_t pages, Pages& data) {
    std::vector<uint32_t> values;
    data.resize(size_t{pages} * kPageSize);
    for (uint32_t i = 0; i < pages; ++i) {
      const PageKey page = key(at + i, field_.versions.fetch_add(1, std::memory_order_relaxed));
      fill_page(page, kind_for(page), data.data() + size_t{i} * kPageSize);
      values.push_back(value_of(page));
    }
    return values;
  }
  // What a page that was loaded shows: zeroes may be of an empty slot or of a zero page.
  Operation seen(uint32_t at, const std::byte* page) {
    Operation sight;
    const auto version = tuck::test::version_of(key(at, 0), page);
    if (!version) {
      EXPECT_TRUE(tuck::test::is_zero_page(page));
      sight.mask = ~kZero;
      return sight;
    }
    EXPECT_TRUE(is_page(key(at, *version), kind_for(key(at, *version)), page)) << "a torn page";
    sight.value = value_of(key(at, *version));
    return sight;
  }
  void note(uint32_t at, Operation operation, uint64_t begin, uint64_t end) {
    operation.lane = lane_;
    operation.begin = begin;
    operation.end = end;
    log_[at].push_back(operation);
  }

  // --- The calls ---------------------------------------------------------------------------------

  void expect_stored(RunResult stored, uint32_t pages) {
    if (stored.code == Errc::no_space) {
      field_.refused.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    EXPECT_EQ(stored.code, Errc::ok) << name_of(stored.code);
    EXPECT_EQ(stored.pages_done, pages);
  }
  void store(uint32_t at, uint32_t pages) {
    Pages data;
    const auto values = make_run(at, pages, data);
    const uint64_t begin = field_.clock.now();
    const RunResult stored = field_.engine.store(field_.area, slot(at), pages, data.data());
    const uint64_t end = field_.clock.now();
    expect_stored(stored, pages);
    Operation write;
    write.kind = OperationKind::write;
    for (uint32_t i = 0; i < stored.pages_done; ++i) {
      write.value = values[i];
      note(at + i, write, begin, end);
    }
  }
  void free(uint32_t at, uint32_t pages) {
    const uint64_t begin = field_.clock.now();
    EXPECT_EQ(field_.engine.free(field_.area, slot(at), pages).code, Errc::ok);
    const uint64_t end = field_.clock.now();
    Operation write;
    write.kind = OperationKind::write;
    for (uint32_t i = 0; i < pages; ++i)
      note(at + i, write, begin, end);
  }
  void extents(uint32_t at, uint32_t pages) {
    std::array<Extent, 8> found;
    uint32_t covered = 0;
    const uint64_t begin = field_.clock.now();
    const size_t count = field_.engine.extents(field_.area, slot(at), pages, found, &covered);
    const uint64_t end = field_.clock.now();
    EXPECT_EQ(covered, pages);
    uint32_t done = 0;
    for (size_t i = 0; i < count; ++i) {
      Operation sight;
      sight.value = static_cast<uint32_t>(found[i].state) << kStateShift;
      sight.mask = kStateMask;
      for (uint32_t p = 0; p < found[i].pages; ++p)
        note(at + done + p, sight, begin, end);
      done += found[i].pages;
    }
    EXPECT_EQ(done, pages);
  }
  void store_if(uint32_t at, uint32_t pages) {
    Pages before(size_t{pages} * kPageSize);
    Pages data;
    const auto values = make_run(at, pages, data);
    std::vector<Entry> entries(pages);
    const Pin pin = field_.engine.pin();
    uint64_t begin = field_.clock.now();
    const RunResult loaded =
        field_.engine.load(pin, field_.area, slot(at), pages, before.data(), entries.data());
    uint64_t end = field_.clock.now();
    ASSERT_EQ(loaded.code, Errc::ok);
    std::vector<uint32_t> held(pages);
    for (uint32_t i = 0; i < pages; ++i) {
      Operation sight = seen(at + i, before.data() + size_t{i} * kPageSize);
      // The entry tells an empty slot from a zero page.
      sight.mask = UINT32_MAX;
      if (entries[i].is_same_filled() && entries[i].same_value() == 0) sight.value = kZero;
      held[i] = sight.value;
      note(at + i, sight, begin, end);
    }
    begin = field_.clock.now();
    const RunResult stored =
        field_.engine.store_if(pin, field_.area, slot(at), pages, data.data(), entries.data());
    end = field_.clock.now();
    Operation replace;
    replace.kind = OperationKind::replace;
    for (uint32_t i = 0; i < stored.pages_done; ++i) {
      replace.value = values[i];
      replace.expected = held[i];
      note(at + i, replace, begin, end);
    }
    if (stored.code != Errc::changed) return expect_stored(stored, pages);
    ASSERT_LT(stored.pages_done, pages);
    Operation refusal;
    refusal.kind = OperationKind::see_other;
    refusal.value = held[stored.pages_done];
    note(at + stored.pages_done, refusal, begin, end);
  }

  Field& field_;
  const uint32_t lane_;
  Random random_;
  std::vector<std::vector<Operation>> log_;
};

void play(EngineOptions options, TestSource& source, uint32_t steps, bool at_the_limit) {
  options.background_thread = true;
  const auto engine = make_engine(options);
  const AreaId area = tuck::engine::test::add_area(*engine, kSlots);
  Field field{*engine, area};
  if (at_the_limit) {
    // Another area takes all the room but a few pages'.
    const AreaId ballast = tuck::engine::test::add_area(*engine, 4096, {}, "ballast");
    Oracle oracle(*engine, ballast, 4096, seed());
    uint32_t end = 0;
    while (oracle.store(end, 1, PageKind::random).code == Errc::ok)
      ++end;
    oracle.free(0, 12);
  }
  std::vector<Player> players;
  for (uint32_t lane = 0; lane < kThreads; ++lane)
    players.emplace_back(field, lane);
  run_threads(kThreads, [&](uint32_t thread) { players[thread].play(steps); });
  players[0].load(0, kSlots);
  for (uint32_t at = 0; at < kSlots; ++at) {
    std::vector<Operation> all;
    for (const Player& player : players)
      all.insert(all.end(), player.log(at).begin(), player.log(at).end());
    EXPECT_EQ(tuck::test::find_impossible(std::move(all)), std::nullopt) << "slot " << at;
  }
  settle(*engine);
  engine->verify();
  const Stats stats = engine->stats();
  EXPECT_EQ(stats.retired_objects, 0u);
  EXPECT_EQ(stats.operations.loads_corrupt, 0u);
  expect_ledger_is_true(*engine, source);
}

TEST(EngineConcurrent, EveryCallOnAFewSlots) {
  TestSource source;
  play(quiet_options(source), source, scaled(8000), false);
}

TEST(EngineConcurrent, EveryCallOnAFewSlotsAtTheLimit) {
  TestSource source;
  EngineOptions options = quiet_options(source);
  options.memory_limit_bytes = 1u << 20;
  options.reserve_bytes = 128u << 10;
  play(options, source, scaled(5000), true);
}

}  // namespace
}  // namespace tuck::engine::test

// Eight threads on the bytes of a few shared pages of a swap area: parts of pages, whole pages,
// zeroes, holes and looks at what is there, judged byte by byte.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "frontends/vm/swap_area.h"
#include "tests/support/cells.h"
#include "tests/support/register_history.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/test_source.h"
#include "tests/support/threads.h"

namespace tuck::vm::test {
namespace {

using tuck::test::CellLog;
using tuck::test::Cells;
using tuck::test::Clock;
using tuck::test::Operation;
using tuck::test::Random;
using tuck::test::run_threads;
using tuck::test::scaled;
using tuck::test::seed;
using tuck::test::TestSource;

constexpr uint32_t kThreads = 8;
constexpr uint32_t kPages = 12;
constexpr uint64_t kSlots = 4096;

struct Field {
  Field(engine::Engine& engine, AreaId id)
      : area(engine, id, kSlots * kPageSize), cells(kPages, seed()) {}

  SwapArea area;
  const Cells cells;
  Clock clock;
  std::atomic<uint32_t> versions{1};
  std::atomic<uint32_t> playing{kThreads};
  std::atomic<uint64_t> waits{0};
  std::atomic<uint64_t> refused{0};
};

class Player {
 public:
  Player(Field& field, uint32_t lane, CellLog& log)
      : field_(field),
        cells_(field.cells),
        lane_(lane),
        random_(tuck::test::mix(seed(), lane)),
        log_(log) {}

  void play(uint32_t steps) {
    for (uint32_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i)
      step();
  }
  void read_all() {
    first_ = 0;
    last_ = cells_.count();
    read();
  }

 private:
  void step() {
    choose_cells();
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return write();
      case 4:
      case 5:
        return zero(random_.one_in(2));
      case 6:
        return trim();
      case 7:
        return status();
      default:
        return read();
    }
  }
  // One of this thread's own, a few from anywhere, or whole pages.
  void choose_cells() {
    if (random_.one_in(2)) {
      first_ = random_.below32(cells_.count() / kThreads) * kThreads + lane_;
      last_ = first_ + 1;
    } else if (random_.one_in(2)) {
      first_ = random_.below32(cells_.count());
      last_ = std::min(cells_.count(), first_ + 1 + random_.below32(9));
    } else {
      const uint32_t page = random_.below32(kPages);
      first_ = cells_.first_of_page(page);
      last_ = cells_.first_of_page(
          std::min(kPages, page + static_cast<uint32_t>(random_.between(1, 2))));
    }
  }
  uint64_t offset() const { return cells_.begin(first_); }
  uint64_t length() const { return cells_.end(last_ - 1) - offset(); }
  Operation begin() {
    Operation times;
    times.lane = lane_;
    times.begin = field_.clock.now();
    return times;
  }

  // Makes the call until all of it is done, or refused for want of room; how far it got.
  template <class Call>
  uint64_t carry_out(Call call) {
    engine::Ticket ticket;
    for (uint64_t done = 0;;) {
      const ByteResult result = call(done, &ticket);
      done += result.bytes_done;
      if (result.code == Errc::pending) {
        ++field_.waits;
        ticket.wait();
        continue;
      }
      if (result.code == Errc::no_space) {
        ++field_.refused;
        return done;
      }
      EXPECT_EQ(result.code, Errc::ok) << name_of(result.code);
      if (done >= length() || result.code != Errc::ok) return done;
    }
  }
  // The first `done` bytes hold these values. A page is written whole or not at all, so a cell is.
  void note_written(Operation times, uint64_t done, const std::vector<uint32_t>& values) {
    times.kind = Operation::Kind::write;
    times.end = field_.clock.now();
    for (uint32_t cell = first_; cell < last_; ++cell) {
      if (cells_.end(cell) - offset() > done) break;
      times.value = values.empty() ? 0 : values[cell - first_];
      log_.add(cell, times);
    }
  }
  void write() {
    const uint32_t version = field_.versions.fetch_add(1, std::memory_order_relaxed);
    std::vector<std::byte> data(length());
    std::vector<uint32_t> values;
    for (uint32_t cell = first_; cell < last_; ++cell) {
      values.push_back(cells_.fill(cell, version, data.data() + (cells_.begin(cell) - offset())));
    }
    const Operation times = begin();
    const uint64_t done = carry_out([&](uint64_t from, engine::Ticket* ticket) {
      return field_.area.write(offset() + from, std::span(data).subspan(from), ticket);
    });
    note_written(times, done, values);
  }
  void zero(bool keep_allocated) {
    const Operation times = begin();
    const uint64_t done = carry_out([&](uint64_t from, engine::Ticket* ticket) {
      return field_.area.write_zeroes(offset() + from, length() - from, keep_allocated, ticket);
    });
    note_written(times, done, {});
  }
  void trim() {
    Operation times = begin();
    EXPECT_EQ(field_.area.trim(offset(), length()).code, Errc::ok);
    times.end = field_.clock.now();
    times.kind = Operation::Kind::write;
    for (uint32_t cell = first_; cell < last_; ++cell) {
      const uint32_t page = cells_.page_of(cell);
      if (cells_.first_of_page(page) < first_ || cells_.first_of_page(page + 1) > last_) continue;
      log_.add(cell, times);
    }
  }
  void status() {
    std::array<ByteExtent, 16> extents;
    Operation times = begin();
    const size_t count = field_.area.status(offset(), length(), extents);
    times.end = field_.clock.now();
    uint64_t at = offset();
    uint32_t cell = first_;
    for (size_t i = 0; i < count; ++i) {
      at += extents[i].bytes;
      for (; cell < last_ && cells_.end(cell) <= at; ++cell) {
        if (extents[i].kind != ExtentKind::data) log_.add(cell, times);
      }
    }
    EXPECT_EQ(at, offset() + length());
  }
  void read() {
    std::vector<std::byte> out(length());
    Operation times = begin();
    const ByteResult result = field_.area.read(offset(), out);
    times.end = field_.clock.now();
    EXPECT_EQ(result.code, Errc::ok);
    EXPECT_TRUE(log_.add_read(first_, last_, out, times)) << log_.broken();
  }

  Field& field_;
  const Cells& cells_;
  const uint32_t lane_;
  Random random_;
  CellLog& log_;
  uint32_t first_ = 0;
  uint32_t last_ = 0;
};

template <class Beside>
void play(engine::EngineOptions options, uint32_t steps, Beside beside) {
  TestSource source;
  options.memory = &source;
  auto made = engine::Engine::create(options);
  ASSERT_TRUE(made.ok()) << made.error().message;
  engine::Engine& engine = **made;
  engine::AreaOptions area_options;
  area_options.slots = kSlots;
  const auto area = engine.add_area(area_options);
  ASSERT_TRUE(area.ok()) << area.error().message;
  Field field(engine, *area);
  std::vector<CellLog> logs(kThreads, CellLog(field.cells));
  std::vector<Player> players;
  for (uint32_t lane = 0; lane < kThreads; ++lane)
    players.emplace_back(field, lane, logs[lane]);
  run_threads(kThreads + 1, [&](uint32_t thread) {
    if (thread == kThreads) return beside(field);
    players[thread].play(steps);
    --field.playing;
  });
  players[0].read_all();
  EXPECT_EQ(find_impossible(field.cells, logs), std::nullopt);
  engine.quiesce();
  engine.verify();
}

// The codec changes under the writers' hands, and everybody does the background's work.
void housekeeping(Field& field) {
  constexpr std::array<engine::CodecSetting, 4> kCodecs = {{{engine::CodecKind::zstd, 1},
                                                            {engine::CodecKind::lz4, 1},
                                                            {engine::CodecKind::none, 0},
                                                            {engine::CodecKind::lz4, 16}}};
  engine::Engine& engine = field.area.engine();
  for (size_t i = 0; field.playing.load() != 0; ++i) {
    EXPECT_EQ(engine.set_codec(field.area.area(), kCodecs[i % kCodecs.size()]), std::nullopt);
    engine.maintain();
    engine.quiesce();
    EXPECT_EQ(engine.stats().areas.size(), 1u);
    std::this_thread::yield();
  }
}

// Pages that do not compress, behind the others', stored until there is no room or it has to be
// waited for, and freed again; until all have played and one store has met with that.
void take_the_room(Field& field, const std::atomic<uint64_t>& until_one) {
  Random random(tuck::test::mix(seed(), 99));
  std::array<std::byte, kPageSize> page;
  engine::Ticket ticket;
  do {
    uint32_t at = kPages;
    for (;;) {
      for (std::byte& byte : page)
        byte = static_cast<std::byte>(random.next() >> 17);
      const engine::RunResult stored =
          field.area.engine().store(field.area.area(), SlotIndex{at}, 1, page.data(), &ticket);
      if (stored.code == Errc::pending) {
        ++field.waits;
        ticket.wait();
        continue;
      }
      if (stored.code == Errc::no_space) {
        ++field.refused;
        break;
      }
      ASSERT_EQ(stored.code, Errc::ok);
      if (++at == 1000) break;
    }
    const uint32_t back = std::min(at - kPages, 1 + random.below32(at));
    ASSERT_EQ(field.area.free_run(SlotIndex{at - back}, back).code, Errc::ok);
    std::this_thread::yield();
  } while (field.playing.load() != 0 || until_one.load() == 0);
}

TEST(SwapAreaConcurrent, BytesOfSharedPages) {
  engine::EngineOptions options;
  options.reserve_bytes = 1u << 18;
  play(options, scaled(8000), housekeeping);
}
TEST(SwapAreaConcurrent, BytesOfSharedPagesAtTheLimit) {
  engine::EngineOptions options;
  options.reserve_bytes = 1u << 16;
  options.memory_limit_bytes = 1u << 20;
  play(options, scaled(6000), [](Field& field) { take_the_room(field, field.refused); });
}
TEST(SwapAreaConcurrent, BytesOfSharedPagesThatWaitForRoom) {
  engine::EngineOptions options;
  options.reserve_bytes = 1u << 17;
  options.empty_reserve = engine::EmptyReserve::wait;
  play(options, scaled(6000), [](Field& field) { take_the_room(field, field.waits); });
}

}  // namespace
}  // namespace tuck::vm::test

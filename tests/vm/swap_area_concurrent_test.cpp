// Threads writing disjoint bytes of the same pages: none is lost.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "frontends/vm/swap_area.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/test_source.h"
#include "tests/support/threads.h"

namespace tuck::vm::test {
namespace {

using tuck::test::Random;
using tuck::test::run_threads;
using tuck::test::scaled;
using tuck::test::seed;
using tuck::test::TestSource;

constexpr uint32_t kWriters = 4;

std::unique_ptr<engine::Engine> make_engine(TestSource& source, bool waiting) {
  engine::EngineOptions options;
  options.memory = &source;
  options.reserve_bytes = 1u << 18;
  if (waiting) options.empty_reserve = engine::EmptyReserve::wait;
  auto engine = engine::Engine::create(options);
  EXPECT_TRUE(engine.ok());
  return std::move(*engine);
}

AreaId add_area(engine::Engine& engine, uint64_t slots) {
  engine::AreaOptions options;
  options.slots = slots;
  return *engine.add_area(options);
}

// Writes all of it, waiting where it must.
void write_all(SwapArea& area, uint64_t offset, std::span<const std::byte> data) {
  engine::Ticket ticket;
  while (!data.empty()) {
    const ByteResult written = area.write(offset, data, &ticket);
    offset += written.bytes_done;
    data = data.subspan(written.bytes_done);
    if (written.code == Errc::pending) {
      ticket.wait();
      continue;
    }
    ASSERT_EQ(written.code, Errc::ok);
  }
}

// The disk is cut into stripes of an odd size, dealt out in turn; each writer writes and checks its
// own.
class Stripes {
 public:
  Stripes(SwapArea& area, uint64_t stripe) : area_(area), stripe_(stripe) {}

  void work(uint32_t writer, uint32_t steps) {
    Random random(seed() + writer);
    const uint64_t count = area_.size_bytes() / stripe_ / kWriters;
    std::vector<uint64_t> tags(count, 0);
    std::vector<std::byte> bytes(stripe_);
    for (uint32_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      const uint64_t index = random.below(count);
      const uint64_t offset = (index * kWriters + writer) * stripe_;
      if (random.one_in(8)) {
        // Zeroes merge at the edges just as writes do.
        uint64_t done = 0;
        while (done < stripe_) {
          const ByteResult zeroed = area_.write_zeroes(offset + done, stripe_ - done, false);
          if (zeroed.code == Errc::no_space) continue;
          ASSERT_EQ(zeroed.code, Errc::ok);
          done += zeroed.bytes_done;
        }
        tags[index] = 0;
      } else if (random.one_in(2)) {
        tags[index] = random.next() | 1;
        fill(tags[index], bytes);
        write_all(area_, offset, bytes);
      }
      expect(offset, tags[index], bytes);
    }
    for (uint64_t index = 0; index < count; ++index) {
      expect((index * kWriters + writer) * stripe_, tags[index], bytes);
    }
  }

 private:
  static std::byte byte_of(uint64_t tag, uint64_t at) {
    return tag == 0 ? std::byte{0} : static_cast<std::byte>(tag >> (at % 7 * 8) ^ at >> 3);
  }
  static void fill(uint64_t tag, std::vector<std::byte>& bytes) {
    for (uint64_t at = 0; at < bytes.size(); ++at)
      bytes[at] = byte_of(tag, at);
  }
  void expect(uint64_t offset, uint64_t tag, std::vector<std::byte>& bytes) {
    ASSERT_EQ(area_.read(offset, bytes).code, Errc::ok);
    for (uint64_t at = 0; at < bytes.size(); ++at) {
      ASSERT_EQ(bytes[at], byte_of(tag, at)) << "byte " << at << " of the stripe at " << offset;
    }
  }

  SwapArea& area_;
  const uint64_t stripe_;
};

void run(uint64_t stripe, bool waiting) {
  TestSource source;
  const auto engine = make_engine(source, waiting);
  constexpr uint64_t kPages = 64;
  SwapArea area(*engine, add_area(*engine, kPages), kPages * kPageSize);
  Stripes stripes(area, stripe);
  run_threads(kWriters, [&](uint32_t writer) { stripes.work(writer, scaled(6000)); });
  engine->quiesce();
  engine->verify();
}

TEST(SwapAreaConcurrent, ManyStripesAPage) {
  run(100, false);
}
TEST(SwapAreaConcurrent, StripesOverPageEdges) {
  run(3001, false);
}
TEST(SwapAreaConcurrent, StripesOfSeveralPages) {
  run(10007, false);
}
TEST(SwapAreaConcurrent, StripesThatWaitForRoom) {
  run(3001, true);
}

// A counter a writer in one and the same page, eight bytes each, as disjoint as can be.
TEST(SwapAreaConcurrent, OnePageManyCounters) {
  TestSource source;
  const auto engine = make_engine(source, false);
  SwapArea area(*engine, add_area(*engine, 1), kPageSize);
  const uint32_t rounds = scaled(10000);
  run_threads(kWriters, [&](uint32_t writer) {
    for (uint64_t i = 1; i <= rounds; ++i) {
      const uint64_t offset = writer * 999;
      ASSERT_EQ(area.write(offset, std::as_bytes(std::span(&i, 1))).code, Errc::ok);
      uint64_t again = 0;
      ASSERT_EQ(area.read(offset, std::as_writable_bytes(std::span(&again, 1))).code, Errc::ok);
      ASSERT_EQ(again, i);
    }
  });
  engine->quiesce();
  engine->verify();
}

}  // namespace
}  // namespace tuck::vm::test

// What frees leave all over the pool must not keep it from being filled again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "allocator/allocator.h"
#include "tests/support/test_source.h"

namespace tuck::allocator::test {
namespace {

constexpr uint64_t kLimit = 16ull << 20;
constexpr uint64_t kBlock = 256u << 10;

// Allocates until it is refused for good, with the background's rounds in between.
size_t fill(Allocator& pool, uint32_t payload_bytes, std::vector<Object>& live) {
  size_t count = 0;
  for (int refused = 0; refused < 5;) {
    const auto location =
        pool.allocate(payload_bytes, Owner{AreaId{0}, SlotIndex{static_cast<uint32_t>(count)}});
    if (location) {
      live.push_back({*location, payload_bytes});
      ++count;
      refused = 0;
    } else {
      pool.maintain();
      ++refused;
    }
  }
  return count;
}

// All but one object in each block of frames.
void free_most(Allocator& pool, std::vector<Object>& live) {
  std::set<uint64_t> blocks;
  std::vector<Object> kept;
  std::vector<Object> dropped;
  for (const Object& object : live) {
    (blocks.insert(object.location * 8 / kBlock).second ? kept : dropped).push_back(object);
  }
  pool.free(dropped);
  live = kept;
  for (int i = 0; i < 5; ++i)
    pool.maintain();
}

std::unique_ptr<Allocator> make_pool(MemorySource& source, bool waits) {
  AllocatorOptions options;
  options.memory = &source;
  options.limit_bytes = kLimit;
  options.address_space_bytes = 16 * kLimit;
  options.reserve_bytes = 1u << 20;
  if (waits) options.empty_reserve = EmptyReserve::wait;
  auto made = Allocator::create(options);
  if (!made) {
    ADD_FAILURE() << made.error().message;
    std::abort();
  }
  (*made)->maintain();
  return std::move(*made);
}

void swing(bool waits) {
  tuck::test::TestSource source;
  const auto owned = make_pool(source, waits);
  Allocator& pool = *owned;
  std::vector<Object> live;
  const size_t at_first = fill(pool, 2040, live);
  ASSERT_GT(at_first * 2048, kLimit * 9 / 10);
  for (int round = 0; round < 10; ++round) {
    free_most(pool, live);
    fill(pool, 2040, live);
    ASSERT_LE(pool.ledger().pool_bytes(), kLimit);
    // Sparse zspages are filled first, so that next to nothing is lost from round to round.
    EXPECT_GT(live.size(), at_first * 9 / 10) << "round " << round;
    pool.verify();
  }
  pool.free(live);
}

TEST(ScatteredPool, FillsAgainAfterEachSwing) {
  swing(false);
}

TEST(ScatteredPool, FillsAgainFromTheReserveAlone) {
  swing(true);
}

// Under EmptyReserve::wait, with all room in ready pieces too short for a raw page's zspage: the
// answer is pending, and the next round brings the run.
TEST(ScatteredPool, ReadyPiecesAreWaitedFor) {
  tuck::test::TestSource source;
  const auto owned = make_pool(source, true);
  Allocator& pool = *owned;
  std::vector<Object> live;
  fill(pool, 2040, live);
  std::vector<Object> dropped;
  // Two neighbours of each eight: whole zspages here and there.
  for (size_t i = 0; i < live.size(); ++i) {
    if (i / 2 % 4 == 0) dropped.push_back(live[i]);
  }
  pool.free(dropped);
  const auto first = pool.allocate(4096, Owner{});
  if (!first) {
    ASSERT_EQ(first.error(), Errc::pending);
    pool.maintain();
    EXPECT_TRUE(pool.allocate(4096, Owner{}));
  }
  pool.verify();
}

}  // namespace
}  // namespace tuck::allocator::test

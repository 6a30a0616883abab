#include "base/claim_array.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include "tests/support/scale.h"
#include "tests/support/threads.h"

namespace tuck {
namespace {

// Plain members: a data race on them is a claim that was held twice.
struct Slot {
  uint64_t owner = 0;
  uint64_t uses = 0;
};

TEST(ClaimArray, GivesEachElementOnce) {
  ClaimArray<Slot> array(5);
  std::vector<ClaimArray<Slot>::Claim> claims;
  for (uint64_t i = 1; i <= 5; ++i) {
    claims.push_back(array.claim());
    EXPECT_EQ(claims.back()->owner, 0u);
    claims.back()->owner = i;
  }
  claims.clear();
  uint64_t sum = 0;
  for (uint32_t i = 0; i < array.count(); ++i)
    sum += array.claim_at(i)->owner;
  EXPECT_EQ(sum, 15u);
}

TEST(ClaimArray, NestsInOneThread) {
  ClaimArray<Slot> array(3);
  const auto outer = array.claim();
  const auto inner = array.claim();
  const auto innermost = array.claim();
  EXPECT_NE(&*outer, &*inner);
  EXPECT_NE(&*inner, &*innermost);
  EXPECT_NE(&*outer, &*innermost);
}

TEST(ClaimArray, AMovedClaimIsGivenBackOnce) {
  ClaimArray<Slot> array(1);
  {
    auto first = array.claim();
    const auto second = std::move(first);
    second->uses = 7;
  }
  // Would wait for ever if it were still taken.
  EXPECT_EQ(array.claim()->uses, 7u);
}

TEST(ClaimArray, MoreThreadsThanElements) {
  constexpr uint32_t kThreads = 6;
  ClaimArray<Slot> array(2);
  const uint32_t rounds = tuck::test::scaled(20000);
  std::atomic<uint64_t> clashes{0};
  tuck::test::run_threads(kThreads, [&](uint32_t thread) {
    for (uint32_t i = 0; i < rounds; ++i) {
      const auto claim = i % 16 == 0 ? array.claim_at(i / 16 % 2) : array.claim();
      claim->owner = thread;
      ++claim->uses;
      if (claim->owner != thread) ++clashes;
    }
  });
  EXPECT_EQ(clashes.load(), 0u);
  EXPECT_EQ(array.claim_at(0)->uses + array.claim_at(1)->uses, uint64_t{kThreads} * rounds);
}

}  // namespace
}  // namespace tuck

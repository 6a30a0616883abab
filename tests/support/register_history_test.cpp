// The judge of concurrent histories, on histories whose verdict is known.
#include "tests/support/register_history.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/pages.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

RegisterCall write(uint32_t value, uint64_t begin, uint64_t end) {
  return {value, true, begin, end};
}
RegisterCall read(uint32_t value, uint64_t begin, uint64_t end) {
  return {value, false, begin, end};
}

TEST(RegisterHistory, WhatCanHaveBeenPasses) {
  EXPECT_EQ(find_conflict({}), std::nullopt);
  EXPECT_EQ(find_conflict({read(0, 1, 2), write(1, 3, 4), read(1, 5, 6)}), std::nullopt);
  // During a write either value may be seen, also by a later reader the old and by an earlier the
  // new one, as long as they overlap.
  EXPECT_EQ(find_conflict({write(1, 1, 10), read(0, 2, 3), read(1, 4, 5), read(1, 11, 12)}),
            std::nullopt);
  // Two writes at once, seen in either order.
  EXPECT_EQ(find_conflict({write(1, 1, 5), write(2, 2, 6), read(1, 7, 8)}), std::nullopt);
  EXPECT_EQ(find_conflict({write(1, 1, 5), write(2, 2, 6), read(2, 7, 8)}), std::nullopt);
}

TEST(RegisterHistory, WhatCannotHaveBeenIsFound) {
  EXPECT_NE(find_conflict({read(3, 1, 2)}), std::nullopt) << "never written";
  EXPECT_NE(find_conflict({read(1, 1, 2), write(1, 3, 4)}), std::nullopt) << "before its write";
  EXPECT_NE(find_conflict({write(1, 1, 2), read(0, 3, 4)}), std::nullopt) << "stale";
  EXPECT_NE(find_conflict({write(1, 1, 2), write(2, 3, 4), read(1, 5, 6)}), std::nullopt)
      << "overwritten";
  EXPECT_NE(find_conflict({write(1, 1, 10), read(1, 2, 3), read(0, 4, 5)}), std::nullopt)
      << "back to the old value";
  EXPECT_NE(find_conflict({write(1, 1, 9), write(2, 1, 9), read(1, 10, 11), read(2, 12, 13),
                           read(1, 14, 15)}),
            std::nullopt)
      << "to and fro";
  EXPECT_NE(find_conflict({write(1, 1, 2), read(1, 3, 4), write(2, 5, 6), read(1, 9, 10)}),
            std::nullopt)
      << "a lost write";
}

TEST(Pages, TellTheirVersionAndNothingElsesPasses) {
  Random random(seed());
  uint32_t told_apart = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    const PageKey key{seed(), random.below32(3), random.below32(1000), random.below32(kVersions)};
    const auto kind = static_cast<PageKind>(random.below(kPageKinds));
    Page page;
    fill_page(key, kind, page.data());
    ASSERT_TRUE(is_page(key, kind, page.data()));
    if (kind == PageKind::zero) {
      ASSERT_TRUE(is_zero_page(page.data()));
      continue;
    }
    ASSERT_FALSE(is_zero_page(page.data()));
    ASSERT_EQ(version_of(key, page.data()), key.version) << name_of(kind);
    // The other half of a page of the next version: a torn page.
    Page torn;
    PageKey next = key;
    next.version = (key.version + 1) % kVersions;
    fill_page(next, kind, torn.data());
    std::copy_n(page.begin(), kPageSize / 2, torn.begin());
    // Pages that are mostly one byte can be alike in one half.
    if (torn == page) continue;
    ASSERT_FALSE(is_page(key, kind, torn.data())) << name_of(kind);
    ++told_apart;
  }
  EXPECT_GT(told_apart, 150u);
}

}  // namespace
}  // namespace tuck::test

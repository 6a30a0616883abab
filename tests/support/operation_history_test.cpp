// The judge of operations, on histories whose verdict is known, and against a search that tries all
// orders.
#include "tests/support/operation_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

using Kind = Operation::Kind;

Operation make(Kind kind, uint32_t lane, uint32_t value, uint64_t begin, uint64_t end) {
  Operation operation;
  operation.kind = kind;
  operation.lane = lane;
  operation.value = value;
  operation.begin = begin;
  operation.end = end;
  return operation;
}
Operation replace(uint32_t lane, uint32_t expected, uint32_t value, uint64_t begin, uint64_t end) {
  Operation operation = make(Kind::replace, lane, value, begin, end);
  operation.expected = expected;
  return operation;
}
bool possible(std::vector<Operation> operations) {
  return find_impossible(std::move(operations)) == std::nullopt;
}

TEST(OperationHistory, ReadsAndWrites) {
  EXPECT_TRUE(possible({}));
  EXPECT_TRUE(possible({make(Kind::see, 0, 0, 1, 2)}));
  EXPECT_FALSE(possible({make(Kind::see, 0, 1, 1, 2)}));
  EXPECT_TRUE(possible({make(Kind::write, 0, 1, 1, 4), make(Kind::see, 1, 0, 2, 3)}));
  EXPECT_TRUE(possible({make(Kind::write, 0, 1, 1, 4), make(Kind::see, 1, 1, 2, 3)}));
  EXPECT_FALSE(possible({make(Kind::write, 0, 1, 1, 2), make(Kind::see, 1, 0, 3, 4)}));
  // New, then old again.
  EXPECT_FALSE(possible(
      {make(Kind::write, 0, 1, 1, 9), make(Kind::see, 1, 1, 2, 3), make(Kind::see, 1, 0, 4, 5)}));
  // The same value twice: the second read is of the second write.
  EXPECT_TRUE(possible({make(Kind::write, 0, 1, 1, 2), make(Kind::write, 0, 0, 3, 4),
                        make(Kind::see, 1, 0, 5, 6), make(Kind::write, 0, 1, 5, 8),
                        make(Kind::see, 1, 1, 7, 9)}));
}

TEST(OperationHistory, ConditionalWrites) {
  EXPECT_TRUE(possible({replace(0, 0, 1, 1, 2), make(Kind::see, 0, 1, 3, 4)}));
  EXPECT_FALSE(possible({replace(0, 5, 1, 1, 2)}));
  // Two that stand on the same value: one of them must have been refused.
  EXPECT_FALSE(possible({replace(0, 0, 1, 1, 4), replace(1, 0, 2, 2, 3)}));
  EXPECT_TRUE(possible({replace(0, 0, 1, 1, 4), make(Kind::see_other, 1, 0, 2, 3)}));
  EXPECT_FALSE(possible({make(Kind::see_other, 1, 0, 2, 3)}));
  // A lost update: written by one, overwritten by one that had not seen it.
  EXPECT_FALSE(possible({make(Kind::write, 0, 7, 1, 2), replace(1, 0, 1, 3, 4)}));
}

TEST(OperationHistory, FailedWritesAndPartialSight) {
  EXPECT_TRUE(possible({make(Kind::may_write, 0, 1, 1, 2), make(Kind::see, 0, 0, 3, 4)}));
  EXPECT_TRUE(possible({make(Kind::may_write, 0, 1, 1, 2), make(Kind::see, 0, 1, 3, 4)}));
  EXPECT_FALSE(possible({make(Kind::may_write, 0, 1, 1, 2), make(Kind::see, 0, 1, 3, 4),
                         make(Kind::see, 0, 0, 5, 6)}));
  Operation high = make(Kind::see, 0, 0x300, 3, 4);
  high.mask = 0xff00;
  EXPECT_TRUE(possible({make(Kind::write, 0, 0x3ab, 1, 2), high}));
  EXPECT_FALSE(possible({make(Kind::write, 0, 0x4ab, 1, 2), high}));
}

TEST(OperationHistory, ALaneKeepsItsOrder) {
  // Open together: of two lanes either may be first, of one lane the first that began.
  EXPECT_TRUE(possible(
      {make(Kind::write, 0, 1, 1, 5), make(Kind::write, 1, 2, 2, 6), make(Kind::see, 0, 1, 7, 8)}));
  EXPECT_FALSE(possible(
      {make(Kind::write, 0, 1, 1, 5), make(Kind::write, 0, 2, 2, 6), make(Kind::see, 0, 1, 7, 8)}));
  EXPECT_FALSE(possible({make(Kind::write, 0, 1, 1, 5), make(Kind::see, 0, 0, 2, 6)}));
  EXPECT_FALSE(possible({make(Kind::see, 0, 1, 1, 5), make(Kind::write, 0, 1, 2, 6)}));
  // Sights of one lane may change places.
  EXPECT_TRUE(possible(
      {make(Kind::write, 1, 1, 1, 9), make(Kind::see, 0, 1, 2, 7), make(Kind::see, 0, 0, 3, 8)}));
}

// Every order, by brute force.
bool possible_by_trying(const std::vector<Operation>& operations) {
  std::vector<size_t> order(operations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto sees = [](const Operation& operation) {
    return operation.kind == Kind::see || operation.kind == Kind::see_other;
  };
  const auto must_precede = [&](const Operation& a, const Operation& b) {
    const bool in_order = a.lane == b.lane && !(sees(a) && sees(b));
    return a.end < b.begin || (in_order && a.begin < b.begin);
  };
  const auto fits = [&](const std::vector<size_t>& chosen, uint32_t skipped) {
    uint32_t held = 0;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const Operation& operation = operations[chosen[i]];
      for (size_t j = i + 1; j < chosen.size(); ++j) {
        if (must_precede(operations[chosen[j]], operation)) return false;
      }
      if (operation.kind == Kind::see && held != operation.value) return false;
      if (operation.kind == Kind::see_other && held == operation.value) return false;
      if (operation.kind == Kind::replace && held != operation.expected) return false;
      if (operation.kind == Kind::may_write && (skipped >> chosen[i] & 1) != 0) continue;
      if (sees(operation)) continue;
      held = operation.value;
    }
    return true;
  };
  do {
    for (uint32_t skipped = 0; skipped < 1u << operations.size(); ++skipped) {
      if (fits(order, skipped)) return true;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

TEST(OperationHistory, AgreesWithTryingAllOrders) {
  Random random(seed());
  uint32_t yes = 0;
  uint32_t no = 0;
  for (uint32_t round = 0; round < scaled(3000); ++round) {
    const auto count = static_cast<size_t>(random.between(2, 5));
    std::vector<uint64_t> times(2 * count);
    std::iota(times.begin(), times.end(), uint64_t{1});
    for (size_t i = times.size(); i > 1; --i)
      std::swap(times[i - 1], times[random.below(i)]);
    std::vector<Operation> operations;
    for (size_t i = 0; i < count; ++i) {
      operations.push_back(make(static_cast<Kind>(random.below(5)), random.below32(2),
                                random.below32(3), std::min(times[2 * i], times[2 * i + 1]),
                                std::max(times[2 * i], times[2 * i + 1])));
      operations.back().expected = random.below32(3);
    }
    const bool expected = possible_by_trying(operations);
    ++(expected ? yes : no);
    ASSERT_EQ(possible(operations), expected) << "round " << round;
  }
  EXPECT_GT(yes, 0u);
  EXPECT_GT(no, 0u);
}

}  // namespace
}  // namespace tuck::test

// Who has a turn when, whose figures count, and who is left out.
#include "bench/frame/rounds.h"

#include <gtest/gtest.h>

#include "bench/frame/pages.h"

namespace tuck::bench {
namespace {

using Values = std::vector<double>;

class BenchRounds : public ::testing::Test {
 protected:
  BenchRounds() { options_.rounds = 3; }

  // Its figure is the number of its turns so far: 0 in the warm-up.
  Contestant counting(const std::string& name, bool ours = false) {
    return {name,
            [this, name, turns = 0]() mutable -> Result<Figures, Error> {
              order_ += name;
              return Figures{{"turn", turns++}};
            },
            ours};
  }
  // Fails in its turn of this number, from 0 on.
  Contestant failing(const std::string& name, int turn, bool ours = false) {
    return {name,
            [this, name, turn, turns = 0]() mutable -> Result<Figures, Error> {
              order_ += name;
              if (turns++ == turn) return Error{Errc::invalid, name + " is broken"};
              return Figures{{"turn", turns - 1}};
            },
            ours};
  }
  Result<Measured, Error> run(const std::vector<Contestant>& contestants) {
    return run_rounds(context_, contestants);
  }

  Options options_;
  const Pages pages_;  // none: no table looks at them here
  Progress progress_{"test", false};
  Context context_{options_, pages_, progress_};
  std::string order_;
};

TEST_F(BenchRounds, EveryoneHasATurnBeforeAnyoneHasTheNext) {
  const auto measured = run({counting("A", true), counting("B"), counting("C")});
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(order_, "ABCBCACABABC");
}

TEST_F(BenchRounds, TheWarmUpIsDropped) {
  const auto measured = run({counting("A", true), counting("B")});
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->get("A", "turn").values(), (Values{1, 2, 3}));
  EXPECT_EQ(measured->get("B", "turn").values(), (Values{1, 2, 3}));
}

TEST_F(BenchRounds, WhatNobodyMeasuredIsEmpty) {
  const auto measured = run({counting("A", true)});
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_TRUE(measured->has("A"));
  EXPECT_FALSE(measured->has("B"));
  EXPECT_TRUE(measured->get("A", "other").empty());
  EXPECT_TRUE(measured->get("B", "turn").empty());
  EXPECT_TRUE(measured->ratio("A", "B", "turn").empty());
  EXPECT_EQ(measured->ratio("A", "A", "turn").values(), (Values{1, 1, 1}));
}

TEST_F(BenchRounds, APeerThatFailsIsLeftOutWithItsReason) {
  const auto measured = run({counting("A", true), failing("B", 2), counting("C")});
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(order_, "ABCBCACABAC") << "B has no turn after the one that failed";
  EXPECT_FALSE(measured->has("B")) << "what it measured before does not count";
  EXPECT_EQ(measured->get("A", "turn").values(), (Values{1, 2, 3}));
  EXPECT_EQ(measured->get("C", "turn").values(), (Values{1, 2, 3}));
  ASSERT_EQ(context_.report().skipped().size(), 1u);
  EXPECT_EQ(context_.report().skipped()[0].who, "B");
  EXPECT_EQ(context_.report().skipped()[0].why, "B is broken");
}

TEST_F(BenchRounds, APeerMayFailInTheWarmUp) {
  const auto measured = run({failing("B", 0), counting("A", true)});
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(order_, "BAAAA");
  EXPECT_FALSE(measured->has("B"));
}

TEST_F(BenchRounds, OursFailingEndsTheRun) {
  const auto measured = run({counting("B"), failing("A", 1, true), counting("C")});
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().message, "A is broken");
  EXPECT_EQ(order_, "BACA") << "nobody has a turn after it";
  EXPECT_TRUE(context_.report().skipped().empty());
}

}  // namespace
}  // namespace tuck::bench

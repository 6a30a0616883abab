// Medians, spreads and ratios.
#include "bench/frame/series.h"

#include <gtest/gtest.h>

namespace tuck::bench {
namespace {

using Values = std::vector<double>;

Series series(const Values& values) {
  Series made;
  for (const double value : values)
    made.add(value);
  return made;
}

TEST(BenchSeries, MedianOfAnOddNumberIsTheOneInTheMiddle) {
  EXPECT_EQ(series({7}).median(), 7);
  EXPECT_EQ(series({9, 1, 5}).median(), 5);
  EXPECT_EQ(series({5, 5, 1, 100, 2}).median(), 5);
}

TEST(BenchSeries, MedianOfAnEvenNumberIsBetweenTheTwoInTheMiddle) {
  EXPECT_EQ(series({4, 1}).median(), 2.5);
  EXPECT_EQ(series({1000, 3, 1, 5}).median(), 4);
}

TEST(BenchSeries, ValuesStayInTheOrderOfTheRounds) {
  const Series some = series({3, 1, 2});
  EXPECT_EQ(some.median(), 2);
  EXPECT_EQ(some.values(), (Values{3, 1, 2}));
}

TEST(BenchSeries, SpreadIsOverTheMedian) {
  const Series some = series({8, 10, 13});
  EXPECT_EQ(some.lowest(), 8);
  EXPECT_EQ(some.highest(), 13);
  EXPECT_DOUBLE_EQ(some.spread(), 0.5);
  EXPECT_EQ(series({4}).spread(), 0);
  EXPECT_EQ(series({-1, 0, 1}).spread(), 0) << "no division by a median of 0";
}

TEST(BenchSeries, EmptyUntilAValueComes) {
  Series some;
  EXPECT_TRUE(some.empty());
  some.add(0);
  EXPECT_FALSE(some.empty());
}

// The medians' ratio would be 10, which no round was.
TEST(BenchSeries, RatiosAreTakenRoundByRound) {
  const Series ratios = ratio(series({10, 20, 30}), series({2, 1, 30}));
  EXPECT_EQ(ratios.values(), (Values{5, 20, 1}));
  EXPECT_EQ(ratios.median(), 5);
}

TEST(BenchSeries, RatiosLeaveOutWhatHasNoPartner) {
  EXPECT_EQ(ratio(series({4, 6, 8}), series({2, 3})).values(), (Values{2, 2}));
  EXPECT_EQ(ratio(series({4, 6, 8}), series({2, 0, 4})).values(), (Values{2, 2}));
  EXPECT_TRUE(ratio(series({4}), Series()).empty());
}

}  // namespace
}  // namespace tuck::bench

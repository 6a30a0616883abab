#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/threads.h"

namespace tuck {
namespace {

using Snapshot = HistogramSnapshot;

TEST(Histogram, BucketsCoverAllValuesInOrder) {
  uint64_t first = 0;  // the smallest value of the bucket
  for (uint32_t bucket = 0; bucket < Snapshot::kBuckets; ++bucket) {
    const uint64_t last = Snapshot::upper_bound(bucket);
    ASSERT_LE(first, last) << bucket;
    ASSERT_EQ(Snapshot::bucket_of(first), bucket);
    ASSERT_EQ(Snapshot::bucket_of(last), bucket);
    // The bound is at most 1/16 above any value of the bucket.
    ASSERT_LE(last - first, first >> Snapshot::kSubBits) << bucket;
    if (bucket + 1 == Snapshot::kBuckets) {
      ASSERT_EQ(last, UINT64_MAX);
    } else {
      first = last + 1;
    }
  }
}

TEST(Histogram, RandomValuesFallWhereTheyBelong) {
  test::Random random(test::seed());
  for (int i = 0; i < 100000; ++i) {
    const uint64_t value = random.next() >> random.below(64);
    const uint32_t bucket = Snapshot::bucket_of(value);
    ASSERT_LT(bucket, Snapshot::kBuckets);
    ASSERT_LE(value, Snapshot::upper_bound(bucket));
    if (bucket > 0) {
      ASSERT_GT(value, Snapshot::upper_bound(bucket - 1));
    }
  }
}

TEST(Histogram, PercentilesAgreeWithTheSortedValues) {
  test::Random random(test::seed());
  for (const uint32_t count : {1u, 2u, 3u, 10u, 999u, 5000u}) {
    LatencyHistogram histogram;
    std::vector<uint64_t> values;
    for (uint32_t i = 0; i < count; ++i) {
      values.push_back(random.next() >> random.between(20, 60));
      histogram.record(values.back());
    }
    std::sort(values.begin(), values.end());
    Snapshot snapshot;
    histogram.add_to(snapshot);
    ASSERT_EQ(snapshot.total(), count);
    for (const double share : {0.0, 0.25, 0.5, 0.75, 0.875, 1.0}) {
      const auto wanted = static_cast<size_t>(std::ceil(share * count));
      const uint64_t exact = values[wanted == 0 ? 0 : wanted - 1];
      EXPECT_EQ(snapshot.percentile(share), Snapshot::upper_bound(Snapshot::bucket_of(exact)))
          << share << " of " << count;
    }
  }
}

TEST(Histogram, EmptyOnesSayZero) {
  const Snapshot snapshot;
  EXPECT_EQ(snapshot.total(), 0u);
  EXPECT_EQ(snapshot.percentile(0.5), 0u);
  EXPECT_EQ(snapshot.percentile(1), 0u);
}

TEST(Histogram, SeveralWritersAddUp) {
  constexpr uint32_t kWriters = 3;
  constexpr uint32_t kValues = 20000;
  const auto histograms = std::make_unique<std::array<LatencyHistogram, kWriters>>();
  test::run_threads(kWriters + 1, [&](uint32_t thread) {
    if (thread < kWriters) {
      for (uint32_t i = 0; i < kValues; ++i)
        (*histograms)[thread].record(i);
      return;
    }
    // A reader at the same time sees at most what will have been recorded.
    for (int i = 0; i < 20; ++i) {
      Snapshot snapshot;
      for (const auto& histogram : *histograms)
        histogram.add_to(snapshot);
      EXPECT_LE(snapshot.total(), uint64_t{kWriters} * kValues);
    }
  });
  Snapshot sum;
  for (const auto& histogram : *histograms) {
    Snapshot one;
    histogram.add_to(one);
    sum.merge(one);
  }
  EXPECT_EQ(sum.total(), uint64_t{kWriters} * kValues);
  EXPECT_EQ(sum.percentile(1), Snapshot::upper_bound(Snapshot::bucket_of(kValues - 1)));
}

}  // namespace
}  // namespace tuck

#include "base/histogram.h"

#include <cmath>

namespace tuck {

uint64_t HistogramSnapshot::percentile(double share) const noexcept {
  if (total_ == 0) return 0;
  const double wanted = std::ceil(share * static_cast<double>(total_));
  uint64_t seen = 0;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen != 0 && static_cast<double>(seen) >= wanted) return upper_bound(bucket);
  }
  return upper_bound(kBuckets - 1);
}

void LatencyHistogram::add_to(HistogramSnapshot& snapshot) const noexcept {
  for (uint32_t bucket = 0; bucket < HistogramSnapshot::kBuckets; ++bucket) {
    const uint64_t count = counts_[bucket].load(std::memory_order_relaxed);
    if (count != 0) snapshot.add(bucket, count);
  }
}

}  // namespace tuck

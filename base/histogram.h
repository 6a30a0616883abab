// A latency histogram with a bounded relative error (1/16 of a power of two), fixed memory, and one
// writer at a time a histogram (writers that share one lose counts, nothing else).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace tuck {

// A copy at rest; histograms of several writers are added up in one.
class HistogramSnapshot {
 public:
  static constexpr uint32_t kSubBits = 4;
  static constexpr uint32_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  // The bucket that a value falls in.
  static constexpr uint32_t bucket_of(uint64_t nanoseconds) noexcept {
    if (nanoseconds < (1u << kSubBits)) return static_cast<uint32_t>(nanoseconds);
    const auto shift = static_cast<uint32_t>(std::bit_width(nanoseconds)) - 1 - kSubBits;
    return ((shift + 1) << kSubBits) +
           static_cast<uint32_t>((nanoseconds >> shift) - (1u << kSubBits));
  }
  // The largest value of a bucket.
  static constexpr uint64_t upper_bound(uint32_t bucket) noexcept {
    if (bucket < (1u << kSubBits)) return bucket;
    const uint32_t shift = (bucket >> kSubBits) - 1;
    const uint64_t base = (bucket & ((1u << kSubBits) - 1)) + (1u << kSubBits);
    return (base << shift) + ((1ull << shift) - 1);
  }

  void add(uint32_t bucket, uint64_t count) noexcept {
    counts_[bucket] += count;
    total_ += count;
  }
  void merge(const HistogramSnapshot& other) noexcept {
    for (uint32_t i = 0; i < kBuckets; ++i)
      counts_[i] += other.counts_[i];
    total_ += other.total_;
  }
  uint64_t total() const noexcept { return total_; }
  // The value that a share (0 … 1) of all values does not exceed; 0 when there are none.
  uint64_t percentile(double share) const noexcept;

 private:
  std::array<uint64_t, kBuckets> counts_{};
  uint64_t total_ = 0;
};

class LatencyHistogram {
 public:
  void record(uint64_t nanoseconds) noexcept {
    auto& count = counts_[HistogramSnapshot::bucket_of(nanoseconds)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Any thread.
  void add_to(HistogramSnapshot& snapshot) const noexcept;

 private:
  std::array<std::atomic<uint64_t>, HistogramSnapshot::kBuckets> counts_{};
};

}  // namespace tuck

// What zram's contestants in the table codecs share.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/frame/frame.h"
#include "bench/peers/zram_device.h"

namespace tuck::bench {

inline constexpr const char* kZramAlgorithm = "lz4";

// Pages one behind the other, at a page's boundary, as direct I/O wants them.
class AlignedPages {
 public:
  // Room for so many, with anything in it.
  explicit AlignedPages(size_t size)
      : pages_(std::make_unique_for_overwrite<Page[]>(size)), size_(size) {}
  // Copies.
  explicit AlignedPages(const std::vector<const std::byte*>& pages);
  size_t size() const noexcept { return size_; }
  std::span<std::byte> bytes(size_t first, size_t count) const noexcept {
    return {pages_[first].bytes, count * kPageSize};
  }

 private:
  struct alignas(kPageSize) Page {
    std::byte bytes[kPageSize];
  };
  std::unique_ptr<Page[]> pages_;
  size_t size_ = 0;
};

// Uncompressed over compressed bytes of what the device holds, as the figure "ratio".
void add_zram_ratio(Figures& figures, const ZramDevice& device);
// A row of this table's, begun.
Row zram_row(const std::string& subject, const Series& ratio);

}  // namespace tuck::bench

// The pages that operations work on: generated, the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.h"

namespace tuck::bench::micro {

class PageSet {
 public:
  explicit PageSet(uint64_t pages) : bytes_(pages * kPageSize) {}

  std::byte* page(uint64_t index) noexcept { return bytes_.data() + index * kPageSize; }
  const std::byte* page(uint64_t index) const noexcept { return bytes_.data() + index * kPageSize; }
  uint64_t pages() const noexcept { return bytes_.size() / kPageSize; }

 private:
  std::vector<std::byte> bytes_;
};

// What a process's memory looks like (bench/corpus), without same-filled pages: no codec works on
// those.
PageSet synthetic_pages(uint64_t pages);
// Each repeats a word of its own, one that an entry can hold.
PageSet same_filled_pages(uint64_t pages);
// Random bytes.
PageSet incompressible_pages(uint64_t pages);
// Random bytes of every length, then zeroes: objects of all sizes, quickly compressed.
PageSet quick_pages(uint64_t pages);

}  // namespace tuck::bench::micro

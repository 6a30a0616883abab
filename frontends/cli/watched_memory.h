// Memory for the engine whose resident part can be asked of the kernel: the ledger's sum is what
// tuck believes, this is what is true.
#pragma once

#include <cstdint>
#include <istream>
#include <vector>

#include "base/base.h"

namespace tuck::cli {

struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What the kernel says about some ranges.
struct KernelView {
  uint64_t resident_bytes = 0;
  uint64_t swapped_bytes = 0;
};

// Anonymous memory that remembers which ranges it has reserved.
class WatchedMemory final : public MemorySource {
 public:
  Result<std::byte*, Error> reserve(size_t bytes, const char* purpose) noexcept override;
  void unreserve(std::byte* at, size_t bytes) noexcept override;
  Errc populate(std::byte* at, size_t bytes) noexcept override;
  void release(std::byte* at, size_t bytes) noexcept override;

  // Reads /proc/self/smaps, which takes some milliseconds a GiB of resident memory.
  KernelView kernel_view() const;

 private:
  AnonymousMemorySource source_;
  mutable Mutex lock_{LockRank::log};  // innermost: nothing is called under it
  std::vector<AddressRange> ranges_ TUCK_GUARDED_BY(lock_);
};

// Adds up Rss and Swap of the mappings that overlap a range. A mapping may cover several ranges
// (the kernel joins neighbours of one kind) and is counted once; the source marks its memory as
// without huge pages, which keeps foreign neighbours from being joined to it.
KernelView parse_smaps(std::istream& smaps, const std::vector<AddressRange>& ranges);

}  // namespace tuck::cli

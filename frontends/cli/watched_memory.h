// Memory for the engine whose resident part can be asked of the kernel: the ledger's sum is what
// tuck believes, this is what is true.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <vector>

#include "base/base.h"
#include "frontends/cli/free_memory.h"
#include "frontends/cli/memory_map.h"

namespace tuck::cli {

// What the kernel says about some ranges.
struct KernelView {
  uint64_t resident_bytes = 0;
  uint64_t swapped_bytes = 0;
};

// Anonymous memory that remembers which ranges it has reserved. A page that nobody may touch stands
// at either end of each: it keeps the kernel from joining the range to a neighbour of another owner
// in one mapping, so that the mapping's figures are the range's, and it stops whoever runs over the
// end.
class WatchedMemory final : public MemorySource {
 public:
  Result<std::byte*, Error> reserve(size_t bytes, const char* purpose) noexcept override;
  void unreserve(std::byte* at, size_t bytes) noexcept override;
  // no_space also where the kernel would have to be waited for: see take_only_what_is_free().
  Errc populate(std::byte* at, size_t bytes) noexcept override;
  void release(std::byte* at, size_t bytes) noexcept override;

  // From now on memory is populated only where the kernel has it free. Any thread.
  void take_only_what_is_free(FreeMemory free) noexcept;

  // What is reserved now, guards aside.
  std::vector<AddressRange> ranges() const;
  // Reads /proc/self/smaps, which takes some milliseconds a GiB of resident memory.
  KernelView kernel_view() const;

 private:
  static constexpr size_t kGuardBytes = 4096;

  bool is_free(size_t bytes) noexcept;

  AnonymousMemorySource source_;
  Mutex free_lock_{LockRank::log};  // as below
  std::optional<FreeMemory> free_ TUCK_GUARDED_BY(free_lock_);
  mutable Mutex lock_{LockRank::log};  // innermost: nothing is called under it
  std::vector<AddressRange> ranges_ TUCK_GUARDED_BY(lock_);
};

// Adds up Rss and Swap of the mappings that overlap a range; each is counted once.
KernelView parse_smaps(std::istream& smaps, const std::vector<AddressRange>& ranges);

}  // namespace tuck::cli

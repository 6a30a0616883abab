// Blocks of memory of one size, mapped when the server starts. A block that is given back goes back
// to the system, but for a few that stay warm: what thousands of clients have used does not stay
// resident when they are gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/base.h"

namespace tuck::nbd {

class BlockPool {
 public:
  BlockPool() noexcept = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  // Called once. block_bytes is a multiple of kPageSize. The error names the bytes that were not to
  // be had.
  Status map(size_t blocks, size_t block_bytes, size_t warm_max);

  // nullptr: all are in use. The one used last comes first: its memory is there already.
  std::byte* take() noexcept;
  void give_back(std::byte* block) noexcept;

  size_t block_bytes() const noexcept { return block_bytes_; }
  size_t blocks() const noexcept { return blocks_; }
  size_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

 private:
  std::byte* memory_ = nullptr;
  size_t blocks_ = 0;
  size_t block_bytes_ = 0;
  size_t warm_max_ = 0;
  std::atomic<size_t> in_use_{0};  // for reports
  Mutex mutex_{LockRank::server};
  std::vector<std::byte*> warm_ TUCK_GUARDED_BY(mutex_);
  std::vector<std::byte*> cold_ TUCK_GUARDED_BY(mutex_);
};

}  // namespace tuck::nbd

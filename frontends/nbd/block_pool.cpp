#include "frontends/nbd/block_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tuck::nbd {

BlockPool::~BlockPool() {
  if (memory_ != nullptr) munmap(memory_, blocks_ * block_bytes_);
}

Status BlockPool::map(size_t blocks, size_t block_bytes, size_t warm_max) {
  TUCK_CHECK(memory_ == nullptr && block_bytes % kPageSize == 0);
  const size_t bytes = blocks * block_bytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Error{Errc::no_space, fmt::format("cannot map {} for the buffers of clients: {}; lower "
                                             "the number of connections",
                                             format_size_rounded(bytes), std::strerror(errno))};
  }
  // A huge page would make the first byte that a client sends cost 2 MiB. Kernels without huge
  // pages say no.
  static_cast<void>(madvise(memory, bytes, MADV_NOHUGEPAGE));
  memory_ = static_cast<std::byte*>(memory);
  blocks_ = blocks;
  block_bytes_ = block_bytes;
  warm_max_ = std::min(warm_max, blocks);
  const MutexLock lock(mutex_);
  // Room for all, so that giving back never allocates.
  warm_.reserve(warm_max_);
  cold_.reserve(blocks);
  for (size_t i = blocks; i-- > 0;)
    cold_.push_back(memory_ + i * block_bytes);
  return std::nullopt;
}

std::byte* BlockPool::take() noexcept {
  const MutexLock lock(mutex_);
  std::vector<std::byte*>& from = warm_.empty() ? cold_ : warm_;
  if (from.empty()) return nullptr;
  std::byte* block = from.back();
  from.pop_back();
  in_use_.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void BlockPool::give_back(std::byte* block) noexcept {
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    if (warm_.size() < warm_max_) {
      warm_.push_back(block);
      return;
    }
  }
  // Outside the lock: this may take some ten microseconds. The kernel refuses it for memory that
  // the process has locked, which then stays where it is, as it should.
  static_cast<void>(madvise(block, block_bytes_, MADV_DONTNEED));
  const MutexLock lock(mutex_);
  cold_.push_back(block);
}

}  // namespace tuck::nbd

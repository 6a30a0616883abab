#include "frontends/cli/watched_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

namespace tuck::cli {
namespace {

AddressRange range_of(const std::byte* at, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  return {.begin = begin, .end = begin + bytes};
}

}  // namespace

KernelView parse_smaps(std::istream& smaps, const std::vector<AddressRange>& ranges) {
  KernelView view;
  for_each_mapping(smaps, [&](const Mapping& mapping) {
    const bool counted = std::any_of(ranges.begin(), ranges.end(), [&](const AddressRange& range) {
      return range.overlaps(mapping.range);
    });
    if (!counted) return;
    view.resident_bytes += mapping.resident_bytes;
    view.swapped_bytes += mapping.swapped_bytes;
  });
  return view;
}

Result<std::byte*, Error> WatchedMemory::reserve(size_t bytes, const char* purpose) noexcept {
  Result<std::byte*, Error> outer = source_.reserve(bytes + 2 * kGuardBytes, purpose);
  if (!outer) return outer;
  std::byte* const at = *outer + kGuardBytes;
  if (mprotect(*outer, kGuardBytes, PROT_NONE) != 0 ||
      mprotect(at + bytes, kGuardBytes, PROT_NONE) != 0) {
    Error error{Errc::no_space, std::string("cannot guard ") + purpose + " (" +
                                    std::strerror(errno) + "): raise vm.max_map_count"};
    source_.unreserve(*outer, bytes + 2 * kGuardBytes);
    return error;
  }
  const MutexLock guard(lock_);
  ranges_.push_back(range_of(at, bytes));
  return at;
}

void WatchedMemory::unreserve(std::byte* at, size_t bytes) noexcept {
  {
    const MutexLock guard(lock_);
    const uint64_t begin = range_of(at, bytes).begin;
    std::erase_if(ranges_, [begin](const AddressRange& range) { return range.begin == begin; });
  }
  source_.unreserve(at - kGuardBytes, bytes + 2 * kGuardBytes);
}

Errc WatchedMemory::populate(std::byte* at, size_t bytes) noexcept {
  if (!is_free(bytes)) return Errc::no_space;
  const Errc code = source_.populate(at, bytes);
  if (code == Errc::ok) return code;
  const MutexLock guard(free_lock_);
  if (free_) free_->was_refused();
  return code;
}

void WatchedMemory::take_only_what_is_free(FreeMemory free) noexcept {
  const MutexLock guard(free_lock_);
  free_.emplace(std::move(free));
}

bool WatchedMemory::is_free(size_t bytes) noexcept {
  const MutexLock guard(free_lock_);
  return !free_ || free_->has(bytes);
}

void WatchedMemory::release(std::byte* at, size_t bytes) noexcept {
  source_.release(at, bytes);
}

std::vector<AddressRange> WatchedMemory::ranges() const {
  const MutexLock guard(lock_);
  return ranges_;
}

KernelView WatchedMemory::kernel_view() const {
  std::ifstream smaps("/proc/self/smaps");
  return parse_smaps(smaps, ranges());
}

}  // namespace tuck::cli

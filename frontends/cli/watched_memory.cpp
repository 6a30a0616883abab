#include "frontends/cli/watched_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace tuck::cli {
namespace {

// "7f00-8000 rw-p …": the header of a mapping. Field lines begin with a capital letter.
bool parse_header(std::string_view line, AddressRange& range) {
  const char* const end = line.data() + line.size();
  const auto begin = std::from_chars(line.data(), end, range.begin, 16);
  if (begin.ec != std::errc{} || begin.ptr == end || *begin.ptr != '-') return false;
  const auto finish = std::from_chars(begin.ptr + 1, end, range.end, 16);
  return finish.ec == std::errc{} && finish.ptr != end && *finish.ptr == ' ';
}

// "Rss:   12 kB"
bool parse_field(const std::string& line, std::string_view label, uint64_t& bytes) {
  if (!line.starts_with(label)) return false;
  uint64_t kilobytes = 0;
  std::istringstream(line.substr(label.size())) >> kilobytes;
  bytes += kilobytes * 1024;
  return true;
}

AddressRange range_of(const std::byte* at, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  return {.begin = begin, .end = begin + bytes};
}

}  // namespace

KernelView parse_smaps(std::istream& smaps, const std::vector<AddressRange>& ranges) {
  KernelView view;
  std::string line;
  bool counted = false;
  while (std::getline(smaps, line)) {
    AddressRange mapping;
    if (parse_header(line, mapping)) {
      counted = std::any_of(ranges.begin(), ranges.end(), [&mapping](const AddressRange& range) {
        return range.begin < mapping.end && mapping.begin < range.end;
      });
    } else if (counted && !parse_field(line, "Rss:", view.resident_bytes)) {
      parse_field(line, "Swap:", view.swapped_bytes);
    }
  }
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
  return source_.populate(at, bytes);
}

void WatchedMemory::release(std::byte* at, size_t bytes) noexcept {
  source_.release(at, bytes);
}

KernelView WatchedMemory::kernel_view() const {
  std::vector<AddressRange> ranges;
  {
    const MutexLock guard(lock_);
    ranges = ranges_;
  }
  std::ifstream smaps("/proc/self/smaps");
  return parse_smaps(smaps, ranges);
}

}  // namespace tuck::cli

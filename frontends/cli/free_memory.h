// How much the kernel has free, beside what it keeps for those who free memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "frontends/cli/file_descriptor.h"

namespace tuck::cli {

// In pages, over all zones, as /proc/zoneinfo has them.
struct ZoneFigures {
  // The most that one zone has above its floor: seven eighths of its min watermark, and what it
  // keeps for allocations that can use no other zone.
  uint64_t most_room = 0;
  // Of all zones. With twice as much free there is no need to look closer.
  uint64_t floors = 0;
};
ZoneFigures parse_zoneinfo(std::string_view zoneinfo) noexcept;

// Lets a real-time task take memory from below the min watermark, where nobody else gets any,
// without eating up what sockets need there. Linux lets such a task go down to three quarters of
// the mark (a half since Linux 6.4; mm/page_alloc.c): the eighth above that is left to the sockets.
class FreeMemory {
 public:
  // Errors: the file cannot be read. It is another one in tests.
  static Result<FreeMemory, Error> open(const char* zoneinfo = "/proc/zoneinfo");
  FreeMemory(FreeMemory&&) = default;

  // Whether that much can be taken now, from one zone. Costs a system call while there is plenty,
  // else as much as reading /proc/zoneinfo (tens of microseconds, more with many processors). A
  // refusal holds for a millisecond: whoever is refused asks again at once, and with a priority
  // over those who could make memory free. One caller at a time; allocates nothing.
  bool has(uint64_t bytes) noexcept;

 private:
  FreeMemory(FileDescriptor zoneinfo, std::vector<char> text) noexcept
      : zoneinfo_(std::move(zoneinfo)), text_(std::move(text)) {}

  using Clock = std::chrono::steady_clock;

  // What is there of the file; empty: it cannot be read.
  std::string_view read() noexcept;

  FileDescriptor zoneinfo_;
  std::vector<char> text_;  // larger than the file was at first
  uint64_t plenty_pages_ = UINT64_MAX;
  Clock::time_point refused_until_;
};

}  // namespace tuck::cli

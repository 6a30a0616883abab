// How much the kernel has free, beside what it keeps for those who free memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "frontends/cli/file_descriptor.h"

namespace tuck::cli {

// In the system's pages, over all zones, as /proc/zoneinfo has them.
struct ZoneFigures {
  // The most that one zone has above its floor: seven eighths of its min watermark, and what it
  // keeps for allocations that can use no other zone.
  uint64_t most_room = 0;
  // The largest eighth of a min watermark: what one zone has above its floor when it is at its
  // mark.
  uint64_t largest_eighth = 0;
  // Of all zones. With twice as much free there is no need to look closer.
  uint64_t floors = 0;
};
// Nothing where the text has no whole zone.
std::optional<ZoneFigures> parse_zoneinfo(std::string_view zoneinfo) noexcept;

// Lets a real-time task take memory from below the min watermark, where ordinary tasks get none,
// without eating up what sockets need there. Linux lets such a task go down to three quarters of
// the mark (a half since Linux 6.4; mm/page_alloc.c): the eighth above that is left to the sockets.
//
// This is a look, not a lock: between it and the allocation others may take memory too, and the
// kernel goes by its own order of zones, not by which has most. What it keeps for atomic
// allocations of high order (a hundredth of a zone at most) counts as free here.
//
// One caller at a time.
class FreeMemory {
 public:
  // Errors: the file cannot be read, or has no zones. It is another one in tests.
  static Result<FreeMemory, Error> open(const char* zoneinfo = "/proc/zoneinfo");
  FreeMemory(FreeMemory&&) = default;

  // Whether that much can be taken now, from one zone. Allocates nothing. Costs one system call
  // while there is plenty, else as much as reading /proc/zoneinfo: some twenty microseconds, more
  // with many processors, and the zones' locks are taken for it. A refusal holds for a millisecond:
  // whoever is refused asks again at once, and with a priority over those who make memory free.
  bool has(uint64_t bytes) noexcept;
  // The kernel did not give what has() had promised.
  void was_refused() noexcept { refused_until_ = Clock::now() + kPause; }
  // What one zone has above its floor when it is at its min watermark, as it was at the last look.
  uint64_t largest_eighth_bytes() const noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPause{1};
  // The marks may be changed at any time, and change by themselves (watermark_boost_factor).
  static constexpr std::chrono::milliseconds kPlentyHolds{100};

  FreeMemory(FileDescriptor zoneinfo, std::vector<char> text) noexcept
      : zoneinfo_(std::move(zoneinfo)), text_(std::move(text)) {}

  std::string_view read() noexcept;
  bool look() noexcept;

  FileDescriptor zoneinfo_;
  std::vector<char> text_;  // four times as large as the file was at first, for more processors
  ZoneFigures figures_;
  Clock::time_point looked_;
  Clock::time_point refused_until_;
};

}  // namespace tuck::cli

// What lets a server live inside the machine that swaps onto it. The kernel takes memory away from
// processes when there is none, and asks this one to take in the pages: it must not need memory of
// the kernel's at that moment, lose its own, wait for its own disk, or be killed.
//
// Each protection is tried, verified by what the kernel then says, and reported. docs/swap.md tells
// users about them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/base.h"
#include "frontends/cli/memory_map.h"

namespace tuck::cli {

enum class ProtectionMode : uint8_t {
  off,
  best_effort,  // --lock-memory: what can be had, and a warning for the rest
  strict,       // --swap: all of them, or no service
};

struct Protection {
  std::string name;
  bool holds = false;
  std::string detail;  // what was verified, or what was refused and what to do
};

class SwapProtection {
 public:
  explicit SwapProtection(ProtectionMode mode) noexcept : mode_(mode) {}

  // First of all, in the main thread: before there are other threads, which inherit what is set
  // here, and before memory is mapped, which is locked as it comes.
  void claim();
  struct Expected {
    std::vector<AddressRange> filled_later;  // the pool's: populated as it is used
    uint64_t reserve_ready_bytes = 0;
    uint64_t reserve_wanted_bytes = 0;
    unsigned connections = 0;  // at most
    // What the largest zone has free in the eighth below its min watermark, at that mark: what the
    // reserve is refilled from (free_memory.h).
    uint64_t refill_share_bytes = 0;
  };
  // When everything that serves is there, and before it serves. Makes all memory resident but what
  // is filled later, and verifies all that was claimed. The error (strict mode only) names what is
  // missing.
  Status complete(const Expected& expected);

  // In a fixed order; empty when off. After complete() they are those of that moment.
  const std::vector<Protection>& list() const noexcept { return list_; }
  ProtectionMode mode() const noexcept { return mode_; }

 private:
  void lock_what_comes();
  Protection check_lock(const std::vector<AddressRange>& filled_later) const;

  ProtectionMode mode_;
  std::string lock_refusal_;  // why not everything could be locked; empty: it is
  std::string oom_refusal_;
  std::string flusher_refusal_;
  std::vector<Protection> list_;
};

// Threads of this process that do not have the flags of PR_SET_IO_FLUSHER. All of them are looked
// at, io_uring's own among them.
struct ThreadFlags {
  uint64_t threads = 0;
  uint64_t unprotected = 0;
  std::string first_unprotected;  // its name
};
ThreadFlags read_thread_flags();

// Of one /proc/PID/task/TID/stat. False: it is not such a text.
bool parse_task_stat(const std::string& text, std::string& name, uint64_t& flags);

}  // namespace tuck::cli

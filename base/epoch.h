// Epochs: how readers without locks and the reuse of memory get along (epoch-based reclamation
// after K. Fraser, "Practical lock-freedom", 2004, section 5.2.3, with claimed lines instead of
// registered threads).
//
// A call claims a line for its duration. What was unpublished before advance() returned stamp s
// can be reused once oldest() >= s: every call that could have seen it has left.
//
// A line's word is the whole state:
//
//   from    to      who                               order
//   free    epoch   enter(): any thread, by CAS       seq_cst; with the seq_cst accesses of what is
//                                                     published: either oldest() sees the line, or
//                                                     the call sees what had been unpublished
//   free    idle    try_claim_idle(), by CAS          acquire
//   epoch   idle    the owner, step_out()             release; pairs with oldest()
//   idle    epoch   the owner, step_in()              seq_cst, as enter()
//   any     free    the owner, leave()                release; pairs with oldest() and the claims
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace tuck {

class Epochs {
 public:
  // Calls under way at one time; more wait (yielding) for a line. 64 is many times the processors
  // of the machines this is made for, since no call spans I/O.
  static constexpr uint32_t kLines = 64;

  // Claims a line and enters the current epoch.
  uint32_t enter() noexcept;
  // Claims line i without entering, unless somebody has it.
  bool try_claim_idle(uint32_t line) noexcept;
  // Leaves the epoch but keeps the line; enters the current one again.
  void step_out(uint32_t line) noexcept;
  void step_in(uint32_t line) noexcept;
  // Gives the line back, in or out of an epoch.
  void leave(uint32_t line) noexcept;

  // Starts a new epoch and returns its number.
  uint64_t advance() noexcept { return current_.fetch_add(1, std::memory_order_seq_cst) + 1; }
  // The oldest epoch that a call is in; UINT64_MAX when none is.
  uint64_t oldest() const noexcept;

 private:
  static constexpr uint64_t kFree = 0;
  static constexpr uint64_t kIdle = 1;
  static constexpr uint64_t kFirst = 2;

  struct alignas(64) Line {
    std::atomic<uint64_t> word{kFree};
  };

  std::array<Line, kLines> lines_{};
  alignas(64) std::atomic<uint64_t> current_{kFirst};
};

}  // namespace tuck

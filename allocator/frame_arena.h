// The pool's frames: which are free, which are populated, and runs of them for zspages.
//
// Frames come in blocks of 64 (256 KiB), one descriptor each; a run never crosses a block, so that
// finding one is arithmetic on one word. Blocks with room are kept in lists by their longest run:
// `ready` by free frames that are populated, `bare` by those that are not.
//
// No system call happens under the lock: a run is taken out first, populated or released, and put
// back. Metadata grows under a lock of its own (once in 2 MiB of pool).
#pragma once

#include <array>
#include <cstdint>

#include "allocator/allocator.h"
#include "base/base.h"

namespace tuck::allocator {

inline constexpr uint32_t kBlockFrames = 64;
inline constexpr uint32_t kBlockBytes = kBlockFrames * kFrameSize;

// One frame's word in the page map: the zspage that it belongs to and its class. Written before any
// entry points into the frame; free frames have kNone.
//   in use 63, class 47…40, zspage 31…0
class PageMapWord {
 public:
  constexpr PageMapWord() = default;
  constexpr PageMapWord(uint32_t zspage, uint32_t size_class) noexcept
      : word_((1ull << 63) | (static_cast<uint64_t>(size_class) << 40) | zspage) {}

  constexpr bool in_use() const noexcept { return (word_ >> 63) != 0; }
  constexpr uint32_t zspage() const noexcept { return static_cast<uint32_t>(word_); }
  constexpr uint32_t size_class() const noexcept {
    return static_cast<uint32_t>(word_ >> 40) & 0xffu;
  }

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(PageMapWord) == 8);

// Guarded by the arena's lock. A frame is in one of four states:
//
//   free  populated   meaning
//   1     1           ready: part of the reserve
//   1     0           bare: address space only
//   0     1           in use by a zspage
//   0     0           taken, on its way to or from the system
struct Block {
  uint64_t free = 0;
  uint64_t populated = 0;
  uint32_t next[2] = {0, 0};  // in the ready and the bare list
  uint32_t previous[2] = {0, 0};
  uint8_t longest[2] = {0, 0};  // the list that it is in; 0: in none
};

class FrameArena {
 public:
  struct Options {
    uint64_t frames = 0;          // of the address space; a multiple of kBlockFrames
    uint64_t limit_frames = 0;    // populated at one time
    uint64_t reserve_frames = 0;  // ready ones to keep
    bool ready_frames_only = false;
  };

  FrameArena(MemorySource& memory, std::byte* pool, ReservedArray<Block> blocks,
             ReservedArray<PageMapWord> page_map, const Options& options) noexcept;

  // A populated run of 1 … kZspageFramesMax frames; its first frame. Errors: no_space, pending.
  Result<uint32_t> take_run(uint32_t frames) noexcept TUCK_EXCLUDES(lock_);
  // Gives a run back; its frames join the reserve (maintain() releases what is too many).
  void give_run(uint32_t frame, uint32_t frames) noexcept TUCK_EXCLUDES(lock_);

  // Refills or trims the reserve, a block a step. Whether anything changed. One caller at a time.
  bool maintain() noexcept TUCK_EXCLUDES(lock_);
  bool reserve_is_low() const noexcept;

  PageMapWord& page_map(uint32_t frame) const noexcept { return page_map_[frame]; }
  uint64_t populated_frames() const noexcept {
    return populated_frames_.load(std::memory_order_relaxed);
  }
  uint64_t ready_frames() const noexcept { return ready_frames_.load(std::memory_order_relaxed); }
  uint64_t metadata_bytes() const noexcept TUCK_EXCLUDES(lock_);

  // How often a run was asked for that the reserve did not have, though the limit allowed more.
  uint64_t reserve_misses() const noexcept {
    return reserve_misses_.load(std::memory_order_relaxed);
  }

  // Checks blocks, lists and counts; returns the number of frames in use.
  uint64_t verify() const TUCK_EXCLUDES(lock_);

 private:
  enum Kind : uint32_t { kReady = 0, kBare = 1 };
  static constexpr uint32_t kNone = UINT32_MAX;

  // Lists of blocks by longest run; heads[kind][longest].
  struct Lists {
    std::array<uint32_t, kBlockFrames + 1> head;
    uint64_t non_empty = 0;  // bit n − 1: head[n] is not kNone
  };

  uint32_t find_block(Kind kind, uint32_t frames) const noexcept TUCK_REQUIRES(lock_);
  void relist(uint32_t block) noexcept TUCK_REQUIRES(lock_);
  void unlink(Kind kind, uint32_t block) noexcept TUCK_REQUIRES(lock_);
  void link(Kind kind, uint32_t block, uint32_t longest) noexcept TUCK_REQUIRES(lock_);
  Errc ask_background(uint32_t frames) noexcept TUCK_REQUIRES(lock_);
  // Adds a block of bare frames, unless there is a bare run of `frames` by now. Errors: no_space
  // (for the metadata), out_of_range (of the address space).
  Errc extend(uint32_t frames) noexcept TUCK_EXCLUDES(growth_, lock_);
  // Takes bare frames of a block out for populating: a run of `frames`, which there is, and with it
  // all of the block's if the limit allows. 0 when the limit does not allow the run.
  uint64_t take_bare(uint32_t block, uint32_t frames, uint64_t* run) noexcept TUCK_REQUIRES(lock_);
  Result<uint32_t> populate_run(uint32_t frames) noexcept TUCK_EXCLUDES(lock_);
  bool refill_one() noexcept TUCK_EXCLUDES(lock_);
  bool trim_one() noexcept TUCK_EXCLUDES(lock_);
  // Populates the frames of mask; those that could not be are returned.
  uint64_t populate_mask(uint32_t block, uint64_t mask) noexcept;
  void release_mask(uint32_t block, uint64_t mask) noexcept;
  std::byte* address(uint32_t block, uint32_t index) const noexcept;

  // Constant after construction.
  MemorySource& memory_;
  std::byte* const pool_;
  const ReservedArray<Block> blocks_;
  const ReservedArray<PageMapWord> page_map_;
  const Options options_;

  Mutex growth_{LockRank::growth};
  mutable Mutex lock_{LockRank::arena};
  std::array<Lists, 2> lists_ TUCK_GUARDED_BY(lock_);
  // These three change with growth_ held as well.
  uint32_t block_count_ TUCK_GUARDED_BY(lock_) = 0;  // blocks [0, block_count_) exist
  size_t blocks_bytes_ TUCK_GUARDED_BY(lock_) = 0;   // populated
  size_t page_map_bytes_ TUCK_GUARDED_BY(lock_) = 0;

  // Written under lock_, read without.
  std::atomic<uint64_t> populated_frames_{0};  // and those on their way from the system
  std::atomic<uint64_t> ready_frames_{0};
  std::atomic<uint64_t> reserve_misses_{0};
  // The last populate failed: stores need not wait for the reserve. Cleared by a success.
  std::atomic<bool> starved_{false};
  // Under ready_frames_only: no ready run is as long as a zspage may be, or one was asked for that
  // no ready frames make up; with pieces_in_the_way_ once the limit leaves no room for a block
  // beside them.
  std::atomic<bool> run_wanted_{false};
  // A run was refused for the limit while there were ready frames, in pieces too short for it.
  std::atomic<bool> pieces_in_the_way_{false};
};

}  // namespace tuck::allocator

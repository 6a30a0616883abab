#include "allocator/frame_arena.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "allocator/size_class.h"

namespace tuck::allocator {
namespace {

constexpr uint64_t run_mask(uint32_t from, uint32_t frames) noexcept {
  const uint64_t ones = frames >= 64 ? ~0ull : (1ull << frames) - 1;
  return ones << from;
}

// Bit i of the result: bits i … i + frames − 1 of word are all set.
constexpr uint64_t run_starts(uint64_t word, uint32_t frames) noexcept {
  uint32_t done = 1;
  while (done < frames && word != 0) {
    const uint32_t step = std::min(done, frames - done);
    word &= word >> step;
    done += step;
  }
  return word;
}

constexpr uint32_t longest_run(uint64_t word) noexcept {
  uint32_t longest = 0;
  while (word != 0) {
    word &= word << 1;
    ++longest;
  }
  return longest;
}

static_assert(run_starts(0b0110111, 3) == 0b0000001);
static_assert(run_starts(~0ull, 64) == 1);
static_assert(longest_run(0b0110111) == 3 && longest_run(~0ull) == 64);

// Calls f(first, count) for each run of set bits.
template <class F>
void for_each_run(uint64_t mask, F f) {
  while (mask != 0) {
    const auto from = static_cast<uint32_t>(std::countr_zero(mask));
    const auto count = static_cast<uint32_t>(std::countr_one(mask >> from));
    f(from, count);
    mask &= ~run_mask(from, count);
  }
}

uint32_t count_bits(uint64_t word) noexcept {
  return static_cast<uint32_t>(std::popcount(word));
}

}  // namespace

FrameArena::FrameArena(MemorySource& memory, std::byte* pool, ReservedArray<Block> blocks,
                       ReservedArray<PageMapWord> page_map, const Options& options) noexcept
    : memory_(memory),
      pool_(pool),
      blocks_(std::move(blocks)),
      page_map_(std::move(page_map)),
      options_(options) {
  MutexLock guard(lock_);
  for (Lists& lists : lists_)
    lists.head.fill(kNone);
}

std::byte* FrameArena::address(uint32_t block, uint32_t index) const noexcept {
  return pool_ + static_cast<size_t>(block) * kBlockBytes + static_cast<size_t>(index) * kFrameSize;
}

// --- Lists ---------------------------------------------------------------------------------------

uint32_t FrameArena::find_block(Kind kind, uint32_t frames) const noexcept {
  const uint64_t lists = lists_[kind].non_empty & ~((1ull << (frames - 1)) - 1);
  if (lists == 0) return kNone;
  return lists_[kind].head[static_cast<uint32_t>(std::countr_zero(lists)) + 1];
}

void FrameArena::unlink(Kind kind, uint32_t block) noexcept {
  Block& b = blocks_[block];
  Lists& lists = lists_[kind];
  const uint32_t longest = b.longest[kind];
  if (b.previous[kind] == kNone) {
    lists.head[longest] = b.next[kind];
    if (b.next[kind] == kNone) lists.non_empty &= ~(1ull << (longest - 1));
  } else {
    blocks_[b.previous[kind]].next[kind] = b.next[kind];
  }
  if (b.next[kind] != kNone) blocks_[b.next[kind]].previous[kind] = b.previous[kind];
  b.longest[kind] = 0;
}

void FrameArena::link(Kind kind, uint32_t block, uint32_t longest) noexcept {
  Block& b = blocks_[block];
  Lists& lists = lists_[kind];
  b.longest[kind] = static_cast<uint8_t>(longest);
  b.previous[kind] = kNone;
  b.next[kind] = lists.head[longest];
  if (b.next[kind] != kNone) blocks_[b.next[kind]].previous[kind] = block;
  lists.head[longest] = block;
  lists.non_empty |= 1ull << (longest - 1);
}

void FrameArena::relist(uint32_t block) noexcept {
  const Block& b = blocks_[block];
  const uint32_t longest[2] = {longest_run(b.free & b.populated),
                               longest_run(b.free & ~b.populated)};
  for (const Kind kind : {kReady, kBare}) {
    if (b.longest[kind] == longest[kind]) continue;
    if (b.longest[kind] != 0) unlink(kind, block);
    if (longest[kind] != 0) link(kind, block, longest[kind]);
  }
}

// --- Taking and giving ---------------------------------------------------------------------------

Result<uint32_t> FrameArena::take_run(uint32_t frames) noexcept {
  {
    MutexLock guard(lock_);
    const uint32_t block = find_block(kReady, frames);
    if (block != kNone) {
      Block& b = blocks_[block];
      const auto from =
          static_cast<uint32_t>(std::countr_zero(run_starts(b.free & b.populated, frames)));
      b.free &= ~run_mask(from, frames);
      relist(block);
      ready_frames_.store(ready_frames() - frames, std::memory_order_relaxed);
      // Before a store misses it: ready frames in pieces are none to a zspage that is longer.
      if (options_.ready_frames_only && find_block(kReady, kZspageFramesMax) == kNone) {
        run_wanted_.store(true, std::memory_order_relaxed);
      }
      return block * kBlockFrames + from;
    }
    if (options_.ready_frames_only) return ask_background(frames);
    if (populated_frames() + frames > options_.limit_frames) {
      if (ready_frames() > 0) pieces_in_the_way_.store(true, std::memory_order_relaxed);
      return Errc::no_space;
    }
  }
  return populate_run(frames);
}

// Under ready_frames_only: whether the background can bring a run, as part of a whole block.
// Whoever is told pending asks again after it has tried, so pending must not be said for ever: each
// of the reasons below makes it no_space.
Errc FrameArena::ask_background(uint32_t frames) noexcept {
  // In use, were all ready pieces given back to the system.
  const uint64_t used = populated_frames() - ready_frames();
  const bool out_of_addresses = uint64_t{block_count_} * kBlockFrames >= options_.frames &&
                                find_block(kBare, frames) == kNone;
  if (used + kBlockFrames > options_.limit_frames || out_of_addresses) return Errc::no_space;
  if (populated_frames() + kBlockFrames > options_.limit_frames) {
    pieces_in_the_way_.store(true, std::memory_order_relaxed);
  } else {
    reserve_misses_.store(reserve_misses() + 1, std::memory_order_relaxed);
  }
  // Also while starved, so that the background tries again.
  run_wanted_.store(true, std::memory_order_relaxed);
  return starved_.load(std::memory_order_relaxed) ? Errc::no_space : Errc::pending;
}

Errc FrameArena::extend(uint32_t frames) noexcept {
  constexpr size_t kGrain = ReservedArray<Block>::kGrain;
  MutexLock growing(growth_);
  uint32_t block = 0;
  size_t blocks_bytes = 0;
  size_t page_map_bytes = 0;
  {
    MutexLock guard(lock_);
    // Another thread may just have added one.
    if (find_block(kBare, frames) != kNone) return Errc::ok;
    block = block_count_;
    blocks_bytes = blocks_bytes_;
    page_map_bytes = page_map_bytes_;
  }
  const uint64_t blocks = uint64_t{block} + 1;
  if (blocks * kBlockFrames > options_.frames) return Errc::out_of_range;
  Errc code = Errc::ok;
  if (blocks * sizeof(Block) > blocks_bytes) {
    code = blocks_.populate_bytes(blocks_bytes, blocks_bytes + kGrain);
    if (code == Errc::ok) blocks_bytes += kGrain;
  }
  if (code == Errc::ok && blocks * kBlockFrames * sizeof(PageMapWord) > page_map_bytes) {
    code = page_map_.populate_bytes(page_map_bytes, page_map_bytes + kGrain);
    if (code == Errc::ok) page_map_bytes += kGrain;
  }
  MutexLock guard(lock_);
  blocks_bytes_ = blocks_bytes;
  page_map_bytes_ = page_map_bytes;
  if (code != Errc::ok) return Errc::no_space;
  Block& b = blocks_[block];
  b.free = ~0ull;
  b.populated = 0;
  b.longest[kReady] = b.longest[kBare] = 0;
  relist(block);
  block_count_ = block + 1;
  return Errc::ok;
}

uint64_t FrameArena::take_bare(uint32_t block, uint32_t frames, uint64_t* run) noexcept {
  Block& b = blocks_[block];
  const uint64_t bare = b.free & ~b.populated;
  *run = run_mask(static_cast<uint32_t>(std::countr_zero(run_starts(bare, frames))), frames);
  const uint64_t budget = options_.limit_frames - populated_frames();
  if (frames > budget) return 0;
  // The rest of the block while we are at it: one system call for up to 64 frames.
  const uint64_t wanted = count_bits(bare) <= budget ? bare : *run;
  b.free &= ~wanted;
  populated_frames_.store(populated_frames() + count_bits(wanted), std::memory_order_relaxed);
  relist(block);
  return wanted;
}

uint64_t FrameArena::populate_mask(uint32_t block, uint64_t mask) noexcept {
  uint64_t failed = 0;
  for_each_run(mask, [&](uint32_t from, uint32_t count) {
    const size_t bytes = static_cast<size_t>(count) * kFrameSize;
    if (memory_.populate(address(block, from), bytes) != Errc::ok) failed |= run_mask(from, count);
  });
  starved_.store(failed != 0, std::memory_order_relaxed);
  return failed;
}

void FrameArena::release_mask(uint32_t block, uint64_t mask) noexcept {
  for_each_run(mask, [&](uint32_t from, uint32_t count) {
    memory_.release(address(block, from), static_cast<size_t>(count) * kFrameSize);
  });
}

Result<uint32_t> FrameArena::populate_run(uint32_t frames) noexcept {
  uint32_t block = kNone;
  uint64_t run = 0;
  uint64_t wanted = 0;
  while (block == kNone) {
    {
      MutexLock guard(lock_);
      block = find_block(kBare, frames);
      if (block != kNone) {
        wanted = take_bare(block, frames, &run);
        if (wanted == 0) return Errc::no_space;
      }
    }
    // Another thread may be quicker to take from the new block; then there is one more.
    if (block == kNone && extend(frames) != Errc::ok) return Errc::no_space;
  }
  const uint64_t failed = populate_mask(block, wanted);
  MutexLock guard(lock_);
  Block& b = blocks_[block];
  const uint64_t came = wanted & ~failed;
  b.populated |= came;
  populated_frames_.store(populated_frames() - count_bits(failed), std::memory_order_relaxed);
  // With the run whole, only the rest of the block is free; else everything goes back.
  const bool whole = (failed & run) == 0;
  const uint64_t back = whole ? wanted & ~run : wanted;
  b.free |= back;
  ready_frames_.store(ready_frames() + count_bits(back & b.populated), std::memory_order_relaxed);
  relist(block);
  if (!whole) return Errc::no_space;
  return block * kBlockFrames + static_cast<uint32_t>(std::countr_zero(run));
}

void FrameArena::give_run(uint32_t frame, uint32_t frames) noexcept {
  for (uint32_t i = 0; i < frames; ++i)
    page_map_[frame + i] = PageMapWord{};
  MutexLock guard(lock_);
  const uint32_t block = frame / kBlockFrames;
  const uint64_t mask = run_mask(frame % kBlockFrames, frames);
  Block& b = blocks_[block];
  TUCK_CHECK((b.free & mask) == 0 && (b.populated & mask) == mask);
  b.free |= mask;
  ready_frames_.store(ready_frames() + frames, std::memory_order_relaxed);
  relist(block);
}

// --- The reserve ---------------------------------------------------------------------------------

bool FrameArena::reserve_is_low() const noexcept {
  // At the limit there is nothing that could be done about it.
  const bool may_grow = populated_frames() + kBlockFrames <= options_.limit_frames;
  return (may_grow && (ready_frames() < options_.reserve_frames / 2 ||
                       run_wanted_.load(std::memory_order_relaxed))) ||
         pieces_in_the_way_.load(std::memory_order_relaxed);
}

bool FrameArena::maintain() noexcept {
  bool changed = false;
  if (pieces_in_the_way_.exchange(false, std::memory_order_relaxed)) {
    while (trim_one())
      changed = true;
  }
  // Trimmed down to the reserve only once there is a quarter more, so that a pool whose use goes up
  // and down a little does not give frames back and take them again all the time.
  const uint64_t high = options_.reserve_frames + options_.reserve_frames / 4 + kBlockFrames;
  if (ready_frames() > high) {
    while (ready_frames() > options_.reserve_frames && trim_one())
      changed = true;
  }
  // A whole block holds any run, however many pieces the reserve is made of.
  if (run_wanted_.exchange(false, std::memory_order_relaxed) && refill_one()) changed = true;
  while (ready_frames() < options_.reserve_frames && refill_one())
    changed = true;
  return changed;
}

bool FrameArena::refill_one() noexcept {
  uint32_t block = kNone;
  uint64_t run = 0;
  uint64_t wanted = 0;
  // Whole blocks: they serve zspages of every length.
  uint32_t frames = kBlockFrames;
  while (block == kNone) {
    {
      MutexLock guard(lock_);
      if (populated_frames() + kBlockFrames > options_.limit_frames) return false;
      block = find_block(kBare, frames);
      if (block != kNone) wanted = take_bare(block, frames, &run);
    }
    if (block != kNone) break;
    const Errc extended = extend(frames);
    if (extended == Errc::no_space) {
      starved_.store(true, std::memory_order_relaxed);
      return false;
    }
    if (extended == Errc::ok) continue;
    // No more addresses: the longest run that there is.
    MutexLock guard(lock_);
    frames = static_cast<uint32_t>(std::bit_width(lists_[kBare].non_empty));
    if (frames == 0) return false;
  }
  const uint64_t failed = populate_mask(block, wanted);
  MutexLock guard(lock_);
  Block& b = blocks_[block];
  b.populated |= wanted & ~failed;
  b.free |= wanted;
  populated_frames_.store(populated_frames() - count_bits(failed), std::memory_order_relaxed);
  ready_frames_.store(ready_frames() + count_bits(wanted & ~failed), std::memory_order_relaxed);
  relist(block);
  return failed == 0;
}

bool FrameArena::trim_one() noexcept {
  uint32_t block = kNone;
  uint64_t mask = 0;
  {
    MutexLock guard(lock_);
    // Short pieces first: the long runs are what the next zspages want.
    block = find_block(kReady, 1);
    if (block == kNone) return false;
    Block& b = blocks_[block];
    mask = b.free & b.populated;
    b.free &= ~mask;
    b.populated &= ~mask;
    ready_frames_.store(ready_frames() - count_bits(mask), std::memory_order_relaxed);
    relist(block);
  }
  release_mask(block, mask);
  MutexLock guard(lock_);
  blocks_[block].free |= mask;
  populated_frames_.store(populated_frames() - count_bits(mask), std::memory_order_relaxed);
  relist(block);
  return true;
}

uint64_t FrameArena::metadata_bytes() const noexcept {
  MutexLock guard(lock_);
  return blocks_bytes_ + page_map_bytes_;
}

uint64_t FrameArena::verify() const {
  MutexLock guard(lock_);
  uint64_t populated = 0;
  uint64_t ready = 0;
  uint64_t used = 0;
  uint64_t listed[2] = {0, 0};
  for (uint32_t block = 0; block < block_count_; ++block) {
    const Block& b = blocks_[block];
    TUCK_CHECK(b.longest[kReady] == longest_run(b.free & b.populated));
    TUCK_CHECK(b.longest[kBare] == longest_run(b.free & ~b.populated));
    for (const Kind kind : {kReady, kBare})
      listed[kind] += b.longest[kind] != 0 ? 1 : 0;
    populated += count_bits(b.populated);
    ready += count_bits(b.free & b.populated);
    used += count_bits(~b.free);
    for (uint32_t i = 0; i < kBlockFrames; ++i) {
      const bool in_use = (b.free >> i & 1) == 0;
      TUCK_CHECK(page_map_[block * kBlockFrames + i].in_use() == in_use);
      TUCK_CHECK(!in_use || (b.populated >> i & 1) != 0);
    }
  }
  for (const Kind kind : {kReady, kBare}) {
    uint64_t count = 0;
    for (uint32_t longest = 1; longest <= kBlockFrames; ++longest) {
      uint32_t block = lists_[kind].head[longest];
      TUCK_CHECK((block != kNone) == ((lists_[kind].non_empty >> (longest - 1) & 1) != 0));
      for (; block != kNone; block = blocks_[block].next[kind]) {
        TUCK_CHECK(blocks_[block].longest[kind] == longest);
        ++count;
      }
    }
    TUCK_CHECK(count == listed[kind]);
  }
  TUCK_CHECK(populated == populated_frames());
  TUCK_CHECK(ready == ready_frames());
  TUCK_CHECK(populated == ready + used);
  return used;
}

}  // namespace tuck::allocator

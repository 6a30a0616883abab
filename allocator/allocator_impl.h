// The allocator's parts put together. Internal to allocator/.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "allocator/allocator.h"
#include "allocator/frame_arena.h"
#include "allocator/size_class.h"
#include "allocator/zspage.h"
#include "base/base.h"

namespace tuck::allocator {

// The zspages of one class, behind the class's lock. A line of its own, so that threads in
// different classes do not meet.
//
// Invariants (verify()): objects == sum of used over the zspages; zspages in the lists of their
// groups; bit g of groups set exactly when head[g] has one.
struct alignas(64) ClassState {
  mutable Mutex lock{LockRank::size_class};
  std::array<ZspageId, kFullnessGroups> head TUCK_GUARDED_BY(lock);
  uint32_t groups TUCK_GUARDED_BY(lock) = 0;
  uint32_t generation TUCK_GUARDED_BY(lock) = 0;
  uint64_t zspages TUCK_GUARDED_BY(lock) = 0;
  uint64_t objects TUCK_GUARDED_BY(lock) = 0;
  uint64_t payload_bytes TUCK_GUARDED_BY(lock) = 0;
};

struct Allocator::Impl {
  Impl(const AllocatorOptions& options, ReservedArray<std::byte> pool, ReservedArray<Block> blocks,
       ReservedArray<PageMapWord> page_map, ReservedArray<Zspage> zspages) noexcept;

  Result<uint64_t> allocate(uint32_t payload_bytes, Owner owner) noexcept;
  void free(std::span<const Object> objects) noexcept;

  // A zspage of the class, with no object yet and in no list.
  Result<ZspageId> make_zspage(uint32_t class_index) noexcept;
  void drop_zspage(ZspageId id) noexcept;
  std::optional<uint64_t> try_take(uint32_t class_index, uint32_t payload_bytes, Owner owner,
                                   ZspageId* fresh) noexcept;
  std::optional<uint64_t> take_larger(uint32_t class_index, uint32_t payload_bytes,
                                      Owner owner) noexcept;
  uint64_t take_object(ClassState& state, uint32_t class_index) noexcept TUCK_REQUIRES(state.lock);
  // Frees one object; adds its zspage to *emptied (linked through next) when it was the last.
  void free_object(ClassState& state, const Object& object, ZspageId* emptied) noexcept
      TUCK_REQUIRES(state.lock);
  void link(ClassState& state, ZspageId id) noexcept TUCK_REQUIRES(state.lock);
  void unlink(ClassState& state, ZspageId id) noexcept TUCK_REQUIRES(state.lock);
  void regroup(ClassState& state, ZspageId id) noexcept TUCK_REQUIRES(state.lock);

  PageMapWord page_map_of(uint64_t location) const noexcept {
    return arena.page_map(static_cast<uint32_t>(location / (kFrameSize / 8)));
  }

  // Constant after construction.
  const AllocatorOptions options;
  const ReservedArray<std::byte> pool;
  std::byte* const base;
  const SizeClasses classes;
  // Synchronise themselves.
  FrameArena arena;
  ZspageTable zspages;
  std::array<ClassState, kSizeClassesMax> states;
};

}  // namespace tuck::allocator

// Descriptors of zspages, and the table that hands them out.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "allocator/size_class.h"
#include "base/base.h"

namespace tuck::allocator {

using ZspageId = uint32_t;
inline constexpr ZspageId kNoZspage = UINT32_MAX;

// Fullness groups of the zspages that have room: group g holds those with used / objects in
// [g/8, (g+1)/8). Full ones are in no list.
inline constexpr uint32_t kFullnessGroups = 8;
inline constexpr uint8_t kGroupFull = kFullnessGroups;

// Guarded by the lock of its size class, from the moment it is in use.
//
// Invariants: used + number of set bits in room == objects of the class; group == group_of(used);
// in the list of its group exactly when it is not full; the page map of its frames names it.
struct Zspage {
  std::array<uint64_t, kZspageObjectsMax / 64> room{};  // a set bit: this object is free
  uint32_t first_frame = 0;
  ZspageId next = kNoZspage;
  ZspageId previous = kNoZspage;
  uint16_t used = 0;
  uint8_t size_class = 0;
  uint8_t group = 0;

  void reset(uint32_t frame, uint8_t class_index, uint32_t objects) noexcept;
  // Takes the first free object; there is one.
  uint32_t take() noexcept;
  // Gives object index back; it was taken.
  void give(uint32_t index) noexcept;
  uint32_t room_count() const noexcept;

  static uint8_t group_of(uint32_t used_objects, uint32_t objects) noexcept {
    return static_cast<uint8_t>(used_objects * kFullnessGroups / objects);
  }
};
static_assert(sizeof(Zspage) == 48);

// Descriptors by number. Addresses are stable; memory grows in steps and is kept.
class ZspageTable {
 public:
  // zspages has room for count_max.
  ZspageTable(ReservedArray<Zspage> zspages, uint32_t count_max) noexcept;

  Zspage& operator[](ZspageId id) const noexcept { return zspages_[id]; }
  // Errors: no_space; with populated_only, which takes what keep_ahead() brought, pending.
  Result<ZspageId> get(bool populated_only) noexcept TUCK_EXCLUDES(growth_, lock_);
  void put(ZspageId id) noexcept TUCK_EXCLUDES(lock_);
  // Populates until so many descriptors can be had without; whether there was anything to do.
  bool keep_ahead(uint64_t count) noexcept TUCK_EXCLUDES(growth_, lock_);
  uint64_t resident_bytes() const noexcept TUCK_EXCLUDES(lock_);

 private:
  static constexpr size_t kGrowBytes = 16u << 10;

  // Populates more, unless more than `had` bytes are there by now.
  Errc grow(size_t had) noexcept TUCK_EXCLUDES(growth_, lock_);

  // Constant after construction.
  const uint32_t count_max_;
  const ReservedArray<Zspage> zspages_;
  Mutex growth_{LockRank::growth};
  mutable Mutex lock_{LockRank::zspages};
  ZspageId free_ TUCK_GUARDED_BY(lock_) = kNoZspage;  // linked through next
  uint32_t free_count_ TUCK_GUARDED_BY(lock_) = 0;
  uint32_t count_ TUCK_GUARDED_BY(lock_) = 0;          // ever handed out
  size_t populated_bytes_ TUCK_GUARDED_BY(lock_) = 0;  // changes with growth_ held as well
  // The last attempt to grow failed: nobody need wait for the next.
  bool starved_ TUCK_GUARDED_BY(lock_) = false;
};

}  // namespace tuck::allocator

// An area's entries: one 8-byte atomic word a slot, in leaves of 512 that are populated on first
// use, or all at once when the area is made. The leaves lie in one reserved address range, so that
// finding an entry is one addition; an untouched area costs one bit a leaf.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/base.h"
#include "engine/entry.h"

namespace tuck::engine {

class SlotTable {
 public:
  static constexpr uint32_t kLeafSlots = 512;
  static constexpr uint64_t kSlotsMax = 1ull << 32;

  // populate_all: every leaf is there from the start.
  static Result<SlotTable, Error> create(MemorySource& source, uint64_t slots, bool populate_all);
  SlotTable(SlotTable&& other) noexcept
      : slots_(other.slots_),
        entries_(std::move(other.entries_)),
        present_(std::move(other.present_)),
        leaves_(other.leaves_.load(std::memory_order_relaxed)) {}
  SlotTable& operator=(SlotTable&&) = delete;

  uint64_t slots() const noexcept { return slots_; }

  // The entry; empty where there is no leaf. seq_cst: see Epochs, free → epoch.
  Entry load(SlotIndex slot) const noexcept {
    if (!has_leaf(slot)) return Entry{};
    return Entry{entries_[value(slot)].load(std::memory_order_seq_cst)};
  }
  // pre: the leaf is there, and the caller holds the lock of the slot's group.
  // seq_cst includes release: whoever loads the new entry sees the object that it names in full.
  Entry exchange(SlotIndex slot, Entry entry) noexcept {
    return Entry{entries_[value(slot)].exchange(entry.word(), std::memory_order_seq_cst)};
  }

  bool has_leaf(SlotIndex slot) const noexcept {
    const uint32_t leaf = value(slot) / kLeafSlots;
    // acquire: pairs with the release in ensure_leaf().
    return (present_[leaf / 64].load(std::memory_order_acquire) >> (leaf % 64) & 1) != 0;
  }
  // Makes the leaf of a slot present. Errors: no_space; nothing has changed then. Callers serialise
  // themselves (the area's leaf lock).
  Errc ensure_leaf(SlotIndex slot) noexcept;

  // Resident bytes of leaves and of the bits that tell them.
  uint64_t resident_bytes() const noexcept;

 private:
  SlotTable(uint64_t slots, ReservedArray<std::atomic<uint64_t>> entries,
            ReservedArray<std::atomic<uint64_t>> present) noexcept
      : slots_(slots), entries_(std::move(entries)), present_(std::move(present)) {}
  Errc ensure_all_leaves() noexcept;

  // Constant after construction.
  uint64_t slots_;
  ReservedArray<std::atomic<uint64_t>> entries_;
  ReservedArray<std::atomic<uint64_t>> present_;  // a bit a leaf
  std::atomic<uint64_t> leaves_{0};
};

}  // namespace tuck::engine

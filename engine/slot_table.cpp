#include "engine/slot_table.h"

#include <utility>

namespace tuck::engine {

static_assert(SlotTable::kLeafSlots * sizeof(Entry) == ReservedArray<Entry>::kGrain,
              "a leaf is what can be populated at once");

Result<SlotTable, Error> SlotTable::create(MemorySource& source, uint64_t slots,
                                           bool populate_all) {
  const uint64_t leaves = (slots + kLeafSlots - 1) / kLeafSlots;
  auto entries =
      ReservedArray<std::atomic<uint64_t>>::create(source, leaves * kLeafSlots, "a slot table");
  if (!entries) return entries.error();
  auto present = ReservedArray<std::atomic<uint64_t>>::create(source, (leaves + 63) / 64,
                                                              "a slot table's index");
  if (!present) return present.error();
  if (present->populate_bytes(0, present->size_bytes()) != Errc::ok) {
    return Error{Errc::no_space, "no memory for the index of a slot table of " +
                                     std::to_string(slots) + " slots: make the area smaller"};
  }
  SlotTable table(slots, std::move(*entries), std::move(*present));
  if (populate_all && table.ensure_all_leaves() != Errc::ok) {
    return Error{Errc::no_space, "no memory for a slot table of " + format_size_rounded(slots * 8) +
                                     ", which is wanted whole: make the area smaller"};
  }
  return table;
}

Errc SlotTable::ensure_all_leaves() noexcept {
  for (uint64_t slot = 0; slot < slots_; slot += kLeafSlots) {
    const Errc code = ensure_leaf(SlotIndex{static_cast<uint32_t>(slot)});
    if (code != Errc::ok) return code;
  }
  return Errc::ok;
}

Errc SlotTable::ensure_leaf(SlotIndex slot) noexcept {
  if (has_leaf(slot)) return Errc::ok;
  const uint32_t leaf = value(slot) / kLeafSlots;
  constexpr size_t kLeafBytes = kLeafSlots * sizeof(Entry);
  const Errc code = entries_.populate_bytes(leaf * kLeafBytes, (leaf + size_t{1}) * kLeafBytes);
  if (code != Errc::ok) return code;
  leaves_.fetch_add(1, std::memory_order_relaxed);
  // release: pairs with has_leaf().
  present_[leaf / 64].fetch_or(1ull << (leaf % 64), std::memory_order_release);
  return Errc::ok;
}

uint64_t SlotTable::resident_bytes() const noexcept {
  return leaves_.load(std::memory_order_relaxed) * kLeafSlots * sizeof(Entry) +
         present_.size_bytes();
}

}  // namespace tuck::engine

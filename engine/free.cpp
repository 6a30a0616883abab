// Batched free, and looking at what is there without decoding it.
#include <algorithm>

#include "engine/engine_impl.h"

namespace tuck::engine {
namespace {

constexpr uint32_t kLeafSlots = SlotTable::kLeafSlots;

SlotState state_of(Entry entry) noexcept {
  switch (entry.kind()) {
    case EntryKind::empty:
      return SlotState::empty;
    case EntryKind::same_word:
    case EntryKind::same_half:
      return entry.same_value() == 0 ? SlotState::zero : SlotState::same_filled;
    case EntryKind::memory:
    case EntryKind::cold:
      break;
  }
  return SlotState::stored;
}

bool any_stored(const SlotTable& table, SlotIndex slot, uint32_t pages) noexcept {
  for (uint32_t i = 0; i < pages; ++i) {
    if (!table.load(slot + i).is_empty()) return true;
  }
  return false;
}

}  // namespace

RunResult EngineImpl::free(AreaId id, SlotIndex slot, uint32_t pages) noexcept {
  Area* const area = find(id, slot, pages);
  if (area == nullptr) return {Errc::out_of_range, 0};
  static constexpr std::array<Entry, kGroupSlots> kEmpty{};
  uint32_t done = 0;
  while (done < pages) {
    const uint32_t in_leaf = std::min(pages - done, kLeafSlots - value(slot + done) % kLeafSlots);
    if (!area->table.has_leaf(slot + done)) {
      done += in_leaf;
      continue;
    }
    // One epoch a leaf: its retired objects go to the allocator in one batch when it ends.
    const PinScope pin(pins_, in_leaf);
    for (const uint32_t end = done + in_leaf; done < end;) {
      const SlotIndex at = slot + done;
      const uint32_t count = pages_in_group(at, end - done);
      if (any_stored(area->table, at, count)) {
        TUCK_SYNC_POINT("engine.free.looked");
        publish(pin.state(), *area, at, std::span(kEmpty.data(), count), nullptr);
      }
      done += count;
    }
  }
  return {Errc::ok, done};
}

size_t EngineImpl::extents(AreaId id, SlotIndex slot, uint32_t pages, std::span<Extent> out,
                           uint32_t* pages_covered) const noexcept {
  *pages_covered = 0;
  const Area* const area = find(id, slot, pages);
  if (area == nullptr) return 0;
  size_t count = 0;
  uint32_t done = 0;
  while (done < pages) {
    SlotState state = SlotState::empty;
    uint32_t step = 1;
    if (area->table.has_leaf(slot + done)) {
      state = state_of(area->table.load(slot + done));
    } else {
      step = std::min(pages - done, kLeafSlots - value(slot + done) % kLeafSlots);
    }
    if (count > 0 && out[count - 1].state == state) {
      out[count - 1].pages += step;
    } else {
      if (count == out.size()) break;
      out[count++] = Extent{step, state};
    }
    done += step;
  }
  *pages_covered = done;
  return count;
}

}  // namespace tuck::engine

// Loads take no lock: the entry and the object are all they need, and the epoch keeps both
// together.
#include <algorithm>
#include <cstring>

#include "engine/engine_impl.h"
#include "engine/same_filled.h"

namespace tuck::engine {
namespace {

// Pages decoded within one epoch: 16 × about 1 µs, so that a long run does not hold back reuse.
constexpr uint32_t kPagesAnEpoch = 16;

}  // namespace

Errc EngineImpl::decode(const Area& area, SlotIndex slot, Entry entry, std::byte* out) noexcept {
  switch (entry.kind()) {
    case EntryKind::empty:
      std::memset(out, 0, kPageSize);
      return Errc::ok;
    case EntryKind::same_word:
    case EntryKind::same_half:
      fill_page(out, entry.same_value());
      return Errc::ok;
    case EntryKind::memory: {
      // Pairs with what the store wrote: an object that belongs to another slot is never decoded.
      if (pool_->header(entry.location()).owner() != allocator::Owner{area.id, slot}) {
        return Errc::corrupt;
      }
      TUCK_SYNC_POINT("engine.load.owner_checked");
      const bool decoded =
          codecs_->decompress(static_cast<CodecKind>(entry.codec()),
                              pool_->payload(entry.location()), entry.length(), out, kPageSize);
      return decoded ? Errc::ok : Errc::corrupt;
    }
    case EntryKind::cold:
      break;
  }
  return Errc::corrupt;
}

RunResult EngineImpl::load(AreaId id, SlotIndex slot, uint32_t pages, std::byte* out) noexcept {
  if (find(id, slot, pages) == nullptr) return {Errc::out_of_range, 0};
  uint32_t done = 0;
  do {
    const PinScope pin(pins_, 0);
    const uint32_t count = std::min(pages - done, kPagesAnEpoch);
    const RunResult result = load(pin.state(), id, slot + done, count,
                                  out + static_cast<size_t>(done) * kPageSize, nullptr);
    done += result.pages_done;
    if (result.code != Errc::ok) return {result.code, done};
  } while (done < pages);
  return {Errc::ok, done};
}

RunResult EngineImpl::load(PinState& pin, AreaId id, SlotIndex slot, uint32_t pages, std::byte* out,
                           Entry* seen) noexcept {
  const Area* const area = find(id, slot, pages);
  if (area == nullptr) return {Errc::out_of_range, 0};
  uint32_t empty = 0;
  for (uint32_t i = 0; i < pages; ++i) {
    const Entry entry = area->table.load(slot + i);
    TUCK_SYNC_POINT("engine.load.entry_read");
    const Errc code = decode(*area, slot + i, entry, out + static_cast<size_t>(i) * kPageSize);
    if (code != Errc::ok) {
      pin.add(Counter::loads_corrupt, 1);
      return {code, i};
    }
    TUCK_SYNC_POINT("engine.load.decoded");
    if (seen != nullptr) seen[i] = entry;
    empty += entry.is_empty() ? 1u : 0u;
  }
  pin.add(Counter::pages_loaded, pages - empty);
  pin.add(Counter::pages_loaded_empty, empty);
  return {Errc::ok, pages};
}

}  // namespace tuck::engine

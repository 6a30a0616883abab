// Publication: the one function that changes entries.
#include "engine/engine_impl.h"

namespace tuck::engine {
namespace {

// How a publication changes what the area holds.
class ContentChange {
 public:
  void count(Entry entry, int64_t sign) noexcept {
    if (entry.is_same_filled()) {
      same_filled_ += sign;
    } else if (entry.is_memory()) {
      const bool raw = entry.codec() == static_cast<uint32_t>(CodecKind::none);
      (raw ? incompressible_ : compressed_) += sign;
      bytes_ += sign * entry.length();
    }
  }
  void apply(ContentCounters& content) const noexcept {
    add(content.same_filled, same_filled_);
    add(content.compressed, compressed_);
    add(content.incompressible, incompressible_);
    add(content.bytes, bytes_);
  }

 private:
  static void add(std::atomic<int64_t>& counter, int64_t amount) noexcept {
    if (amount != 0) counter.fetch_add(amount, std::memory_order_relaxed);
  }

  int64_t same_filled_ = 0;
  int64_t compressed_ = 0;
  int64_t incompressible_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

// Puts fresh in place of the entries of as many slots from `slot` on, all of one group. With seen,
// a slot whose entry is not seen[i] any more stops it. Returns how many slots were published.
//
// pre: the leaf is there (or fresh is all empty and so is the leaf's absence); pin has room for
// kGroupSlots retired objects; the objects that fresh names are written in full.
//
// Objects are never overwritten: the new one is whole before its entry is exchanged in, and the old
// one is retired after. Nothing in here can fail.
uint32_t EngineImpl::publish(PinState& pin, Area& area, SlotIndex slot,
                             std::span<const Entry> fresh, const Entry* seen) noexcept {
  TUCK_DCHECK(fresh.size() <= kGroupSlots);
  std::array<Entry, kGroupSlots> old;
  uint32_t published = 0;
  TUCK_SYNC_POINT("engine.publish.begins");
  {
    MutexLock guard(groups_.of(area.id, slot));
    TUCK_SYNC_POINT("engine.publish.locked");
    for (; published < fresh.size(); ++published) {
      const SlotIndex at = slot + published;
      if (seen != nullptr && !area.table.load(at).same_content(seen[published])) break;
      TUCK_SYNC_POINT("engine.publish.entry_checked");
      old[published] = area.table.exchange(at, fresh[published]);
    }
  }
  TUCK_SYNC_POINT("engine.publish.published");
  ContentChange change;
  uint32_t freed = 0;
  for (uint32_t i = 0; i < published; ++i) {
    freed += fresh[i].is_empty() && !old[i].is_empty() ? 1u : 0u;
    change.count(old[i], -1);
    change.count(fresh[i], +1);
    if (old[i].is_memory()) retire(pin, old[i]);
  }
  change.apply(area.content);
  if (freed != 0) pin.add(Counter::pages_freed, freed);
  return published;
}

// Every unit is one page, so an entry taken out was the last that named its object.
void EngineImpl::retire(PinState& pin, Entry entry) noexcept {
  TUCK_DCHECK(entry.order() == 0);
  pin.retire(allocator::Object{entry.location(), entry.length()});
}

}  // namespace tuck::engine

#include <cstring>
#include <optional>

#include "engine/engine_impl.h"
#include "engine/same_filled.h"

namespace tuck::engine {

Area* EngineImpl::find(AreaId id, SlotIndex slot, uint32_t pages) const noexcept {
  if (value(id) >= kAreasMax) return nullptr;
  // acquire: pairs with the release in add_area().
  Area* const area = areas_[value(id)].load(std::memory_order_acquire);
  if (area == nullptr) return nullptr;
  const uint64_t slots = area->table.slots();
  return value(slot) <= slots && pages <= slots - value(slot) ? area : nullptr;
}

// --- A page --------------------------------------------------------------------------------------

// The entry for a page that is not same-filled, its object written and not yet known to anybody.
Result<Entry> EngineImpl::prepare_page(const Area& area, CodecSetting codec, SlotIndex slot,
                                       const std::byte* page, CodecContext& context) noexcept {
  const uint32_t compressed = Codecs::compress(context, codec, page, kPageSize,
                                               context.scratch.get(), compressed_bytes_max_);
  const bool raw = compressed == 0;
  const uint32_t bytes = raw ? kPageSize : compressed;
  const auto location = pool_->allocate(bytes, allocator::Owner{area.id, slot});
  if (!location) return location.error();
  std::memcpy(pool_->payload(*location), raw ? page : context.scratch.get(), bytes);
  const CodecKind kind = raw ? CodecKind::none : codec.kind;
  return Entry::memory(*location, bytes, static_cast<uint32_t>(kind), 0);
}

// Makes the entries of as many of the pages as there is room for; goes on from prepared.count.
void EngineImpl::prepare(Area& area, SlotIndex slot, uint32_t pages, const std::byte* data,
                         Prepared& prepared) noexcept {
  prepared.code = Errc::ok;
  if (!area.table.has_leaf(slot)) {
    MutexLock guard(leaves_);
    prepared.code = area.table.ensure_leaf(slot);
    if (prepared.code != Errc::ok) return;
  }
  const CodecSetting codec = area.codec.load(std::memory_order_acquire);
  std::optional<CodecClaim> context;
  for (; prepared.count < pages; ++prepared.count) {
    const std::byte* const page = data + static_cast<size_t>(prepared.count) * kPageSize;
    uint64_t word = 0;
    if (is_same_filled(page, &word) && Entry::holds_word(word)) {
      prepared.entries[prepared.count] = Entry::same_filled(word);
      continue;
    }
    if (!context) context.emplace(codecs_->claim());
    const auto entry = prepare_page(area, codec, slot + prepared.count, page, **context);
    if (!entry) {
      prepared.code = entry.error();
      return;
    }
    prepared.entries[prepared.count] = *entry;
  }
}

// Room that is there and has only to be fetched: objects that are freed and wait for readers to
// leave, frames that stand ready in pieces. Without it a client that frees a page and stores
// another would be refused until the background has been by. Whether it is worth trying once more.
bool EngineImpl::fetch_room() noexcept {
  // A reader is inside for 16 pages at most; one that stays is not waited for.
  constexpr uint32_t kLooks = 64;
  TUCK_SYNC_POINT("engine.fetch_room.begins");
  const bool some = pins_.retired_objects() != 0;
  pins_.drain(kLooks);
  TUCK_SYNC_POINT("engine.fetch_room.drained");
  // Frames go to and come from the system: not in a store that must do without that.
  if (options_.empty_reserve != EmptyReserve::populate) return some;
  // Another thread's round may have frames in its hands; wait for it.
  MutexLock guard(maintenance_);
  pool_->maintain();
  return true;
}

// Objects that were prepared and never published: nobody can have seen them.
void EngineImpl::discard(std::span<const Entry> unpublished) noexcept {
  std::array<allocator::Object, kGroupSlots> objects;
  size_t count = 0;
  for (const Entry entry : unpublished) {
    if (entry.is_memory()) objects[count++] = {entry.location(), entry.length()};
  }
  pool_->free(std::span(objects.data(), count));
}

// What the caller is told when there was no room, and the ticket's fate.
Errc EngineImpl::give_up(Errc code, Ticket* ticket, PinState& pin) noexcept {
  if (code == Errc::pending && ticket != nullptr && options_.empty_reserve == EmptyReserve::wait) {
    pin.add(Counter::stores_pending, 1);
    TUCK_SYNC_POINT("engine.give_up.pending");
    tickets_.add(*ticket);
    TUCK_SYNC_POINT("engine.give_up.ticket_waits");
    // After add(): the background lets go of every ticket that it finds after having refilled.
    wake_background();
    return Errc::pending;
  }
  pin.add(Counter::stores_no_space, 1);
  wake_background();
  return Errc::no_space;
}

// --- A run ---------------------------------------------------------------------------------------

RunResult EngineImpl::store(AreaId id, SlotIndex slot, uint32_t pages, const std::byte* data,
                            Ticket* ticket) noexcept {
  Area* const area = find(id, slot, pages);
  if (area == nullptr) return {Errc::out_of_range, 0};
  uint32_t done = 0;
  while (done < pages) {
    const SlotIndex at = slot + done;
    const uint32_t count = pages_in_group(at, pages - done);
    const std::byte* const from = data + static_cast<size_t>(done) * kPageSize;
    Prepared prepared;
    prepare(*area, at, count, from, prepared);
    if (prepared.code == Errc::no_space && fetch_room()) prepare(*area, at, count, from, prepared);
    TUCK_SYNC_POINT("engine.store.prepared");
    // The point of no return: what is prepared is published, whatever became of the rest. The epoch
    // begins only here, so that slow codecs do not hold back the reuse of freed objects.
    const PinScope pin(pins_, kGroupSlots);
    publish(pin.state(), *area, at, std::span(prepared.entries.data(), prepared.count), nullptr);
    pin.state().add(Counter::pages_stored, prepared.count);
    done += prepared.count;
    if (prepared.code != Errc::ok) return {give_up(prepared.code, ticket, pin.state()), done};
  }
  if (pool_->reserve_is_low()) wake_background();
  return {Errc::ok, done};
}

RunResult EngineImpl::store_if(PinState& pin, AreaId id, SlotIndex slot, uint32_t pages,
                               const std::byte* data, const Entry* seen, Ticket* ticket) noexcept {
  Area* const area = find(id, slot, pages);
  if (area == nullptr) return {Errc::out_of_range, 0};
  uint32_t done = 0;
  while (done < pages) {
    const SlotIndex at = slot + done;
    const uint32_t count = pages_in_group(at, pages - done);
    if (pin.room() < kGroupSlots) return {Errc::changed, done};
    Prepared prepared;
    prepare(*area, at, count, data + static_cast<size_t>(done) * kPageSize, prepared);
    TUCK_SYNC_POINT("engine.store_if.prepared");
    const std::span<const Entry> fresh(prepared.entries.data(), prepared.count);
    const uint32_t published = publish(pin, *area, at, fresh, seen + done);
    pin.add(Counter::pages_stored, published);
    done += published;
    if (published < prepared.count) {
      TUCK_SYNC_POINT("engine.store_if.discards");
      discard(fresh.subspan(published));
      pin.add(Counter::store_if_changed, 1);
      return {Errc::changed, done};
    }
    if (prepared.code != Errc::ok) return {give_up(prepared.code, ticket, pin), done};
  }
  return {Errc::ok, done};
}

}  // namespace tuck::engine

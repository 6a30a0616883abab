// The background thread's work, statistics, and the walk that checks everything.
#include <algorithm>
#include <chrono>

#include "engine/engine_impl.h"

namespace tuck::engine {
namespace {

// How often the background looks without being woken: a few retired objects that no later call
// pushes out wait this long at most.
constexpr std::chrono::milliseconds kRound{100};

uint64_t count_of(const std::atomic<int64_t>& counter) {
  return static_cast<uint64_t>(std::max<int64_t>(0, counter.load(std::memory_order_relaxed)));
}

ContentStats content_of(const ContentCounters& counters) {
  ContentStats content;
  content.pages_same_filled = count_of(counters.same_filled);
  content.pages_compressed = count_of(counters.compressed);
  content.pages_incompressible = count_of(counters.incompressible);
  content.bytes_compressed = count_of(counters.bytes);
  content.pages_stored =
      content.pages_same_filled + content.pages_compressed + content.pages_incompressible;
  return content;
}

void add(ContentStats& sum, const ContentStats& part) {
  sum.pages_stored += part.pages_stored;
  sum.pages_same_filled += part.pages_same_filled;
  sum.pages_compressed += part.pages_compressed;
  sum.pages_incompressible += part.pages_incompressible;
  sum.bytes_compressed += part.bytes_compressed;
}

}  // namespace

void EngineImpl::maintain() noexcept {
  if (!maintenance_.try_lock()) return;
  pins_.sweep();
  pool_->maintain();
  TUCK_SYNC_POINT("engine.maintain.refilled");
  maintenance_.unlock();
  // After the refill, whether it brought anything or not: who waits finds out by calling again.
  tickets_.notify_all();
}

void EngineImpl::background() noexcept {
  for (;;) {
    {
      MutexLock guard(wake_lock_);
      if (!wake_wanted_ && !stop_) wake_.wait_for(wake_lock_, kRound);
      if (stop_) return;
      wake_wanted_ = false;
    }
    maintain();
  }
}

void EngineImpl::wake_background() noexcept {
  MutexLock guard(wake_lock_);
  if (wake_wanted_) return;
  wake_wanted_ = true;
  wake_.notify_one();
}

void EngineImpl::quiesce() noexcept {
  // Each line is seen empty once: what is retired in it later is of later calls.
  while (!pins_.drain(UINT32_MAX)) {
  }
}

Stats EngineImpl::stats() const {
  Stats stats;
  stats.ledger = pool_->ledger();
  stats.memory_limit_bytes = options_.memory_limit_bytes;
  stats.retired_objects = pins_.retired_objects();
  stats.operations.pages_stored = pins_.sum(Counter::pages_stored);
  stats.operations.pages_loaded = pins_.sum(Counter::pages_loaded);
  stats.operations.pages_loaded_empty = pins_.sum(Counter::pages_loaded_empty);
  stats.operations.pages_freed = pins_.sum(Counter::pages_freed);
  stats.operations.stores_no_space = pins_.sum(Counter::stores_no_space);
  stats.operations.stores_pending = pins_.sum(Counter::stores_pending);
  stats.operations.reserve_misses = pool_->reserve_misses();
  stats.operations.store_if_changed = pins_.sum(Counter::store_if_changed);
  stats.operations.loads_corrupt = pins_.sum(Counter::loads_corrupt);
  MutexLock guard(admin_);
  for (const auto& slot : areas_) {
    const Area* const area = slot.load(std::memory_order_relaxed);
    if (area == nullptr) continue;
    AreaStats line;
    line.id = area->id;
    line.name = area->name;
    line.slots = area->table.slots();
    line.codec = area->codec.load(std::memory_order_relaxed);
    line.content = content_of(area->content);
    add(stats.content, line.content);
    stats.slot_table_bytes += area->table.resident_bytes();
    stats.areas.push_back(std::move(line));
  }
  return stats;
}

// The area's entries against its objects and its counters.
void EngineImpl::verify_area(const Area& area, std::vector<uint64_t>& locations) const {
  ContentStats found;
  for (uint64_t i = 0; i < area.table.slots(); ++i) {
    const SlotIndex slot{static_cast<uint32_t>(i)};
    if (!area.table.has_leaf(slot)) {
      i += SlotTable::kLeafSlots - i % SlotTable::kLeafSlots - 1;
      continue;
    }
    const Entry entry = area.table.load(slot);
    if (entry.is_empty()) continue;
    ++found.pages_stored;
    if (entry.is_same_filled()) {
      ++found.pages_same_filled;
      continue;
    }
    TUCK_CHECK(entry.is_memory());
    TUCK_CHECK((pool_->header(entry.location()).owner() == allocator::Owner{area.id, slot}));
    const bool raw = entry.codec() == static_cast<uint32_t>(CodecKind::none);
    ++(raw ? found.pages_incompressible : found.pages_compressed);
    TUCK_CHECK(!raw || entry.length() == kPageSize);
    found.bytes_compressed += entry.length();
    locations.push_back(entry.location());
  }
  const ContentStats counted = content_of(area.content);
  TUCK_CHECK(found.pages_same_filled == counted.pages_same_filled);
  TUCK_CHECK(found.pages_compressed == counted.pages_compressed);
  TUCK_CHECK(found.pages_incompressible == counted.pages_incompressible);
  TUCK_CHECK(found.bytes_compressed == counted.bytes_compressed);
}

void EngineImpl::verify() const {
  MutexLock admin(admin_);
  // The background may not run either: frames on their way are in no place that can be checked.
  MutexLock maintenance(maintenance_);
  pool_->verify();
  std::vector<uint64_t> locations;
  for (const auto& slot : areas_) {
    const Area* const area = slot.load(std::memory_order_relaxed);
    if (area != nullptr) verify_area(*area, locations);
  }
  // Every object has one entry, or has been retired.
  std::sort(locations.begin(), locations.end());
  TUCK_CHECK(std::adjacent_find(locations.begin(), locations.end()) == locations.end());
  uint64_t objects = 0;
  for (const allocator::ClassLedger& line : pool_->ledger().classes)
    objects += line.objects;
  TUCK_CHECK(objects == locations.size() + pins_.retired_objects());
}

}  // namespace tuck::engine

// The engine's parts put together. Internal to engine/.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <thread>

#include "allocator/allocator.h"
#include "base/base.h"
#include "engine/codec.h"
#include "engine/engine.h"
#include "engine/pins.h"
#include "engine/slot_table.h"
#include "engine/ticket_queue.h"

namespace tuck::engine {

// Slots whose entries are published under one lock.
inline constexpr uint32_t kGroupSlots = 16;
// Pages of [slot, slot + pages) that lie in the group of slot.
inline uint32_t pages_in_group(SlotIndex slot, uint32_t pages) noexcept {
  return std::min(pages, kGroupSlots - value(slot) % kGroupSlots);
}
inline constexpr uint32_t kAreasMax = 4096;
static_assert(kAreasMax == 1u << allocator::ObjectHeader::kAreaBits);

// What an area holds now. Counts are of pages; changed by the difference once a publication.
struct alignas(64) ContentCounters {
  std::atomic<int64_t> same_filled{0};
  std::atomic<int64_t> compressed{0};
  std::atomic<int64_t> incompressible{0};
  std::atomic<int64_t> bytes{0};
};

struct Area {
  Area(AreaId area_id, const AreaOptions& options, SlotTable slot_table)
      : id(area_id), name(options.name), table(std::move(slot_table)), codec(options.codec) {}

  // Constant after construction.
  const AreaId id;
  const std::string name;
  // Synchronise themselves.
  SlotTable table;
  std::atomic<CodecSetting> codec;
  ContentCounters content;
};
static_assert(std::atomic<CodecSetting>::is_always_lock_free);

// Locks of groups, shared by hash. 1024: two of 64 calls meet in one by chance once in thirty.
class GroupLocks {
 public:
  Mutex& of(AreaId area, SlotIndex slot) noexcept {
    const uint64_t group = (static_cast<uint64_t>(value(area)) << 32 | value(slot)) / kGroupSlots;
    return locks_[(group * 0x9e3779b97f4a7c15ull) >> (64 - kBits)].mutex;
  }

 private:
  static constexpr unsigned kBits = 10;
  struct alignas(64) Line {
    Mutex mutex{LockRank::group};
  };
  std::array<Line, 1u << kBits> locks_;
};

class EngineImpl {
 public:
  EngineImpl(const EngineOptions& options, std::unique_ptr<allocator::Allocator> pool,
             std::unique_ptr<Codecs> codecs, ReservedArray<PinState> pins);
  ~EngineImpl();

  static Result<std::unique_ptr<EngineImpl>, Error> create(const EngineOptions& options);

  // areas.cpp
  Result<AreaId, Error> add_area(const AreaOptions& options) TUCK_EXCLUDES(admin_);
  Status remove_area(AreaId id) TUCK_EXCLUDES(admin_);
  Status set_codec(AreaId id, CodecSetting codec) TUCK_EXCLUDES(admin_);

  // store.cpp
  RunResult store(AreaId id, SlotIndex slot, uint32_t pages, const std::byte* data,
                  Ticket* ticket) noexcept;
  RunResult store_if(PinState& pin, AreaId id, SlotIndex slot, uint32_t pages,
                     const std::byte* data, const Entry* seen, Ticket* ticket) noexcept;
  bool fetch_room() noexcept;
  // load.cpp
  RunResult load(AreaId id, SlotIndex slot, uint32_t pages, std::byte* out) noexcept;
  RunResult load(PinState& pin, AreaId id, SlotIndex slot, uint32_t pages, std::byte* out,
                 Entry* seen) noexcept;
  // free.cpp
  RunResult free(AreaId id, SlotIndex slot, uint32_t pages) noexcept;
  size_t extents(AreaId id, SlotIndex slot, uint32_t pages, std::span<Extent> out,
                 uint32_t* pages_covered) const noexcept;
  // housekeeping.cpp
  Stats stats() const TUCK_EXCLUDES(admin_);
  void maintain() noexcept;
  void quiesce() noexcept;
  void verify() const TUCK_EXCLUDES(admin_);

  PinSet& pins() noexcept { return pins_; }

 private:
  // The area, if [slot, slot + pages) lies within it.
  Area* find(AreaId id, SlotIndex slot, uint32_t pages) const noexcept;

  // store.cpp: pages of one group.
  struct Prepared {
    std::array<Entry, kGroupSlots> entries;
    uint32_t count = 0;
    Errc code = Errc::ok;  // why there are not more
  };
  void prepare(Area& area, SlotIndex slot, uint32_t pages, const std::byte* data,
               Prepared& prepared) noexcept;
  Result<Entry> prepare_page(const Area& area, CodecSetting codec, SlotIndex slot,
                             const std::byte* page, CodecContext& context) noexcept;
  void discard(std::span<const Entry> unpublished) noexcept;
  Errc give_up(Errc code, Ticket* ticket, PinState& pin) noexcept;

  // publish.cpp: the only place where entries change.
  uint32_t publish(PinState& pin, Area& area, SlotIndex slot, std::span<const Entry> fresh,
                   const Entry* seen) noexcept;
  void retire(PinState& pin, Entry entry) noexcept;

  // load.cpp
  Errc decode(const Area& area, SlotIndex slot, Entry entry, std::byte* out) noexcept;

  // housekeeping.cpp
  Status start_background();
  void background() noexcept;
  void wake_background() noexcept;
  void verify_area(const Area& area, std::vector<uint64_t>& locations) const;

  // Constant after construction.
  const EngineOptions options_;
  const std::unique_ptr<allocator::Allocator> pool_;
  const std::unique_ptr<Codecs> codecs_;
  const uint32_t compressed_bytes_max_;  // above it a raw page costs no more

  // Synchronise themselves.
  PinSet pins_;
  GroupLocks groups_;
  TicketQueue tickets_;
  // Written under admin_ (release); read by every call (acquire).
  std::array<std::atomic<Area*>, kAreasMax> areas_{};

  mutable Mutex admin_{LockRank::admin};
  // One leaf is populated at a time.
  Mutex leaves_{LockRank::leaves};
  mutable Mutex maintenance_{LockRank::maintenance};

  // The background thread.
  Mutex wake_lock_{LockRank::tickets};
  std::condition_variable_any wake_;
  bool wake_wanted_ TUCK_GUARDED_BY(wake_lock_) = false;
  bool stop_ TUCK_GUARDED_BY(wake_lock_) = false;
  std::thread thread_;
};

}  // namespace tuck::engine

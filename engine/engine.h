// Façade of engine/: the single pool of compressed pages.
//
//   area    an array of slots (one NBD export, one address space's swap); all areas share the pool
//   slot    one page's place in an area
//   entry   the slot's 8-byte word: empty, same-filled, or where the page's object is
//   object  a unit's compressed bytes in the allocator
//   pin     being inside an epoch: what entries seen under it name stays readable until it ends
//
// store / load / free / extents take runs of slots, are noexcept, allocate nothing after the area
// was added, and may be called from any thread at any time, also for the same slots: each page is
// the old one or the new one. Loads take no lock. Data belongs to the caller and is not touched
// after the call has returned.
//
// Where to read on: entry.h (the word), publish.cpp (how it changes), pins.h (how objects die).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/base.h"
#include "engine/codec_setting.h"
#include "engine/entry.h"
#include "engine/stats.h"

namespace tuck::engine {

// What a store does that finds no ready frame.
using allocator::EmptyReserve;

struct EngineOptions {
  // Limit of the pool's resident frames (free ones held ready included). 0: none but the machine's.
  uint64_t memory_limit_bytes = 0;
  // Frames populated ahead of use and kept ready, by the background thread.
  uint64_t reserve_bytes = 2ull << 20;
  EmptyReserve empty_reserve = EmptyReserve::populate;
  // Off: no thread is started; call maintain() now and then.
  bool background_thread = true;
  // Where the pool's memory comes from; nullptr: anonymous memory. Not owned; outlives the engine.
  MemorySource* memory = nullptr;
};

struct AreaOptions {
  std::string name;    // for statistics
  uint64_t slots = 0;  // 1 … 2^32
  CodecSetting codec;
  // All of the slot table is populated when the area is added (8 bytes a slot), so that no store
  // needs memory for it. Off: leaves of 512 slots are populated on first use.
  bool populate_table = false;
};

// How far a call on a run got: the first pages_done pages are done, what is behind them is
// unchanged (store, free) or not filled in (load).
struct [[nodiscard]] RunResult {
  Errc code = Errc::ok;
  uint32_t pages_done = 0;
};

enum class SlotState : uint8_t {
  empty,        // never stored, or freed: loads as zeroes
  zero,         // stored, all zeroes
  same_filled,  // stored, one word repeated
  stored,       // an object in memory
};

struct Extent {
  uint32_t pages = 0;
  SlotState state = SlotState::empty;
};

class TicketQueue;

// A place to wait for a call that returned Errc::pending. Owned by the caller, one call at a time.
// When what the call waited for has come (or cannot come any more) the ticket is notified, once;
// the caller then makes the call again for the rest. Nothing of the caller's data is held
// meanwhile.
//
// The ticket stays alive and in place from the call that returned pending until wait() has returned
// or the callback has been entered; the engine does not touch it after that.
class Ticket {
 public:
  // Called from any thread, with no engine lock held; must not block.
  using Notify = void (*)(Ticket&) noexcept;

  // For callers that block: use wait().
  Ticket() noexcept = default;
  // For callers with a ring or an event loop. context is for the callback's use.
  Ticket(Notify notify, void* context) noexcept : notify_(notify), context_(context) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  bool waiting() const noexcept { return waiting_.load(std::memory_order_acquire); }
  void* context() const noexcept { return context_; }
  // Blocks until the ticket is notified. Only for tickets made without a callback.
  void wait() noexcept;

 private:
  friend class TicketQueue;
  Notify notify_ = nullptr;
  void* context_ = nullptr;
  TicketQueue* queue_ = nullptr;  // the one it waits in, or waited in last
  // Written under the queue's lock; its release pairs with the acquire in waiting().
  std::atomic<bool> waiting_{false};
  Ticket* next_ = nullptr;  // guarded by the queue's lock
};

struct PinState;  // engine/pins.h
class EngineImpl;

// Being inside an epoch. Objects named by entries that were read under a pin stay as they are until
// it ends, so an entry that is still the same word names the same bytes. Keep it short: it holds
// back the reuse of freed memory. Never held across I/O or a wait for a ticket, nor over calls that
// do not take the pin (they may wait for its end). One call at a time may use a pin.
class Pin {
 public:
  Pin(Pin&& other) noexcept : engine_(other.engine_), state_(other.state_) {
    other.state_ = nullptr;
  }
  Pin& operator=(Pin&&) = delete;
  ~Pin();

 private:
  friend class Engine;
  Pin(EngineImpl* engine, PinState* state) noexcept : engine_(engine), state_(state) {}
  EngineImpl* engine_;
  PinState* state_;
};

class Engine {
 public:
  // Errors: no memory or address space to be had (the message says which and how much), or
  // options that contradict each other.
  static Result<std::unique_ptr<Engine>, Error> create(const EngineOptions& options);
  // No call may be under way, no ticket waiting.
  ~Engine();

  // Adds an area, all slots empty. Errors: slots out of range, too many areas (4096), no memory.
  Result<AreaId, Error> add_area(const AreaOptions& options);
  // Frees all pages of the area and forgets it. No call on this area may be under way.
  Status remove_area(AreaId area);
  // Later stores use this codec; stored pages keep theirs. Errors: no such area, no memory for the
  // codec's contexts.
  Status set_codec(AreaId area, CodecSetting codec);

  // Stores pages * kPageSize bytes of data, page by page in order, until the first failure.
  // Errors: no_space; pending (only under EmptyReserve::wait and with a ticket; without one it
  // is no_space); out_of_range.
  RunResult store(AreaId area, SlotIndex slot, uint32_t pages, const std::byte* data,
                  Ticket* ticket = nullptr) noexcept;
  // Fills out with pages * kPageSize bytes; empty slots read as zeroes.
  // Errors: corrupt, out_of_range. (pending is for pages that are not in memory: none yet.)
  RunResult load(AreaId area, SlotIndex slot, uint32_t pages, std::byte* out,
                 Ticket* ticket = nullptr) noexcept;
  // Empties the slots; one pass, each lock of the layers below taken once a batch.
  // Errors: out_of_range.
  RunResult free(AreaId area, SlotIndex slot, uint32_t pages) noexcept;
  // Writes consecutive extents from slot on, neighbours of one state merged, until the run or the
  // span ends; returns how many, and in pages_covered how far.
  size_t extents(AreaId area, SlotIndex slot, uint32_t pages, std::span<Extent> out,
                 uint32_t* pages_covered) const noexcept;

  // --- Read-modify-write -----------------------------------------------------------------------
  // Enters an epoch. Waits if too many retired objects are waiting for other pins to end.
  Pin pin() noexcept;
  // As load, and notes in seen[0 … pages) the entries that the bytes came from.
  RunResult load(const Pin& pin, AreaId area, SlotIndex slot, uint32_t pages, std::byte* out,
                 Entry* seen) noexcept;
  // As store, but a page is put in place only if its entry is still seen[i] (age aside); otherwise
  // the call stops there with changed. The entries must have been seen under this very pin. changed
  // also says that so much was stored under this pin that it has to end: go again from pin().
  RunResult store_if(const Pin& pin, AreaId area, SlotIndex slot, uint32_t pages,
                     const std::byte* data, const Entry* seen, Ticket* ticket = nullptr) noexcept;

  // --- Housekeeping ----------------------------------------------------------------------------
  Stats stats() const noexcept;
  // For a store_if() that was refused with no_space, after its pin has ended: frees what is
  // retired, and brings ready frames together. Whether it is worth trying once more. store() does
  // it by itself. No pin may be held.
  bool fetch_room() noexcept;
  // One round of what the background thread does: give back what was retired, refill or trim the
  // reserve, wake waiting tickets. Any thread; one at a time, a second caller returns at once.
  void maintain() noexcept;
  // Blocks until everything retired by calls that ended before this one has been freed.
  void quiesce() noexcept;
  // Walks everything and checks every invariant; aborts with the broken one's text. No call
  // may be under way meanwhile; the background waits.
  void verify() const;

 private:
  explicit Engine(std::unique_ptr<EngineImpl> impl) noexcept;
  std::unique_ptr<EngineImpl> impl_;
};

}  // namespace tuck::engine

// Pins: a call's place in an epoch, and how objects die.
//
// An object that publication took out of the table may still be read by a call that saw its entry.
// It is retired: put down in the line of the call that took it out, which only that line's owner
// touches. When enough have gathered, the line's owner seals them with a new epoch, and frees them
// in one batch once no call is left in an older one. What a line is left with, the next owner, or
// the background, frees.
//
// Bound: kRetiredMax objects a line; a call that needs room waits, outside of its own epoch, for
// the calls that are in its way.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/allocator.h"
#include "base/base.h"

namespace tuck::engine {

enum class Counter : uint32_t {
  pages_stored,
  pages_loaded,
  pages_loaded_empty,
  pages_freed,
  stores_no_space,
  stores_pending,
  store_if_changed,
  loads_corrupt,
  count_,
};

struct PinState {
  static constexpr uint32_t kRetiredMax = 1024;
  // Freed in batches of about this many: a batch takes each class lock once.
  static constexpr uint32_t kRetireBatch = 64;

  uint32_t line = 0;
  uint32_t count_at_enter = 0;  // of `retired`
  // The first `sealed` of `retired` were taken out before epoch `stamp` began.
  uint32_t sealed = 0;
  uint64_t stamp = 0;
  // Written by the owner of the line, read by statistics; relaxed.
  std::atomic<uint32_t> count{0};
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Counter::count_)> counters{};
  std::array<allocator::Object, kRetiredMax> retired{};

  uint32_t room() const noexcept { return kRetiredMax - count.load(std::memory_order_relaxed); }
  void retire(allocator::Object object) noexcept {
    const uint32_t at = count.load(std::memory_order_relaxed);
    TUCK_DCHECK(at < kRetiredMax);
    retired[at] = object;
    count.store(at + 1, std::memory_order_relaxed);
  }
  // One writer: no read-modify-write needed.
  void add(Counter counter, uint64_t amount) noexcept {
    auto& value = counters[static_cast<size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
};

class PinSet {
 public:
  explicit PinSet(allocator::Allocator& allocator, ReservedArray<PinState> states) noexcept
      : allocator_(allocator), states_(std::move(states)) {}

  // Enters an epoch, with room for `room` retired objects. With room 0 it takes no lock.
  PinState& enter(uint32_t room) noexcept;
  // A call that has retired nothing takes no lock here either: a load may run in a signal handler
  // that has interrupted the allocator.
  void leave(PinState& state) noexcept;

  // Frees what is retired by now, line after line, whoever holds them meanwhile; yields at most
  // `looks` times to calls that are in the way. Whether every line was seen empty.
  bool drain(uint32_t looks) noexcept;
  // Frees what has been retired in lines that nobody holds and can be freed by now. Returns how
  // many objects are still waiting there.
  uint64_t sweep() noexcept;
  uint64_t retired_objects() const noexcept;
  uint64_t sum(Counter counter) const noexcept;

 private:
  // pre: the line is idle. Frees what can be; seals what is not yet sealed.
  void flush(PinState& state) noexcept;
  void make_room(PinState& state, uint32_t room) noexcept;
  // Whether the line is empty now.
  bool sweep_line(uint32_t line) noexcept;

  allocator::Allocator& allocator_;
  Epochs epochs_;
  const ReservedArray<PinState> states_;
};

// A pin for the length of a scope.
class PinScope {
 public:
  PinScope(PinSet& pins, uint32_t room) noexcept : pins_(pins), state_(pins.enter(room)) {}
  ~PinScope() { pins_.leave(state_); }
  PinScope(const PinScope&) = delete;
  PinScope& operator=(const PinScope&) = delete;

  PinState& state() const noexcept { return state_; }

 private:
  PinSet& pins_;
  PinState& state_;
};

}  // namespace tuck::engine

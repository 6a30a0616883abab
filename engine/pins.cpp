#include "engine/pins.h"

#include <sched.h>

#include <algorithm>

namespace tuck::engine {

PinState& PinSet::enter(uint32_t room) noexcept {
  const uint32_t line = epochs_.enter();
  PinState& state = states_[line];
  state.line = line;
  if (state.room() < room) make_room(state, room);
  return state;
}

void PinSet::leave(PinState& state) noexcept {
  if (state.count.load(std::memory_order_relaxed) >= PinState::kRetireBatch) {
    epochs_.step_out(state.line);
    flush(state);
  }
  epochs_.leave(state.line);
}

void PinSet::renew(PinState& state, uint32_t room) noexcept {
  make_room(state, room);
}

void PinSet::make_room(PinState& state, uint32_t room) noexcept {
  // Outside of the epoch, so that two calls that wait for each other's can both go on.
  epochs_.step_out(state.line);
  for (;;) {
    flush(state);
    if (state.room() >= room) break;
    ::sched_yield();
  }
  epochs_.step_in(state.line);
}

void PinSet::flush(PinState& state) noexcept {
  uint32_t count = state.count.load(std::memory_order_relaxed);
  while (count > 0) {
    if (state.sealed == 0) {
      state.stamp = epochs_.advance();
      state.sealed = count;
    }
    if (epochs_.oldest() < state.stamp) return;
    allocator_.free(std::span(state.retired.data(), state.sealed));
    std::copy(state.retired.begin() + state.sealed, state.retired.begin() + count,
              state.retired.begin());
    count -= state.sealed;
    state.sealed = 0;
    state.count.store(count, std::memory_order_relaxed);
  }
}

uint64_t PinSet::sweep() noexcept {
  uint64_t waiting = 0;
  for (uint32_t line = 0; line < Epochs::kLines; ++line) {
    PinState& state = states_[line];
    if (state.count.load(std::memory_order_relaxed) == 0) continue;
    if (epochs_.try_claim_idle(line)) {
      flush(state);
      epochs_.leave(line);
    }
    waiting += state.count.load(std::memory_order_relaxed);
  }
  return waiting;
}

uint64_t PinSet::retired_objects() const noexcept {
  uint64_t objects = 0;
  for (uint32_t line = 0; line < Epochs::kLines; ++line) {
    objects += states_[line].count.load(std::memory_order_relaxed);
  }
  return objects;
}

uint64_t PinSet::sum(Counter counter) const noexcept {
  uint64_t sum = 0;
  for (uint32_t line = 0; line < Epochs::kLines; ++line) {
    sum += states_[line].counters[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace tuck::engine

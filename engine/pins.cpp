#include "engine/pins.h"

#include <algorithm>

namespace tuck::engine {

PinState& PinSet::enter(uint32_t room) noexcept {
  const uint32_t line = epochs_.enter();
  PinState& state = states_[line];
  state.line = line;
  if (state.room() < room) make_room(state, room);
  state.count_at_enter = state.count.load(std::memory_order_relaxed);
  return state;
}

void PinSet::leave(PinState& state) noexcept {
  const uint32_t count = state.count.load(std::memory_order_relaxed);
  if (count != state.count_at_enter && count >= PinState::kRetireBatch) {
    epochs_.step_out(state.line);
    flush(state);
  }
  epochs_.leave(state.line);
}

void PinSet::make_room(PinState& state, uint32_t room) noexcept {
  // Outside of the epoch, so that two calls that wait for each other's can both go on.
  epochs_.step_out(state.line);
  Backoff backoff;
  for (;;) {
    flush(state);
    if (state.room() >= room) break;
    backoff.pause();
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
    TUCK_SYNC_POINT("engine.pins.sealed");
    if (epochs_.oldest() < state.stamp) return;
    TUCK_SYNC_POINT("engine.pins.frees");
    allocator_.free(std::span(state.retired.data(), state.sealed));
    std::copy(state.retired.begin() + state.sealed, state.retired.begin() + count,
              state.retired.begin());
    count -= state.sealed;
    state.sealed = 0;
    state.count.store(count, std::memory_order_relaxed);
  }
}

bool PinSet::sweep_line(uint32_t line) noexcept {
  PinState& state = states_[line];
  if (state.count.load(std::memory_order_relaxed) == 0) return true;
  if (!epochs_.try_claim_idle(line)) return false;
  flush(state);
  const bool empty = state.count.load(std::memory_order_relaxed) == 0;
  epochs_.leave(line);
  return empty;
}

uint64_t PinSet::sweep() noexcept {
  uint64_t waiting = 0;
  for (uint32_t line = 0; line < Epochs::kLines; ++line) {
    if (!sweep_line(line)) waiting += states_[line].count.load(std::memory_order_relaxed);
  }
  return waiting;
}

bool PinSet::drain(uint32_t looks) noexcept {
  Backoff backoff;
  for (uint32_t line = 0; line < Epochs::kLines; ++line) {
    while (!sweep_line(line)) {
      if (looks == 0) return false;
      --looks;
      TUCK_SYNC_POINT("engine.pins.drain_waits");
      backoff.pause();
    }
  }
  return true;
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

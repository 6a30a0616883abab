#include "frontends/nbd/buffers.h"

#include <algorithm>
#include <cstring>

namespace tuck::nbd {

std::span<std::byte> ReceiveBuffer::free_part() noexcept {
  size_t moved = 0;
  if (begin_ == end_) {
    moved = begin_;
  } else if (begin_ != 0 && memory_.size() - end_ < memory_.size() / 2) {
    std::memmove(memory_.data(), memory_.data() + begin_, size());
    moved = begin_;
  }
  begin_ -= moved;
  end_ -= moved;
  for (Arrival& arrival : std::span(arrived_).first(arrivals_))
    arrival.end -= std::min(moved, arrival.end);
  return memory_.subspan(end_);
}

void ReceiveBuffer::received(size_t bytes, uint64_t now_ns) noexcept {
  TUCK_CHECK(bytes <= memory_.size() - end_);
  end_ += bytes;
  size_t used_up = 0;
  while (used_up < arrivals_ && arrived_[used_up].end <= begin_)
    ++used_up;
  std::move(arrived_.begin() + static_cast<std::ptrdiff_t>(used_up),
            arrived_.begin() + static_cast<std::ptrdiff_t>(arrivals_), arrived_.begin());
  arrivals_ -= used_up;
  if (arrivals_ < arrived_.size()) ++arrivals_;
  arrived_[arrivals_ - 1] = {end_, now_ns};
}

void SendBuffers::reset(const std::array<std::span<std::byte>, 2>& halves) noexcept {
  halves_ = {Half{halves[0]}, Half{halves[1]}};
  filling_ = sending_ = 0;
}

std::span<std::byte> SendBuffers::reserve(size_t bytes) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    Half& half = halves_[filling_];
    if (half.pending() == 0) half.begin = half.end = 0;
    if (half.memory.size() - half.end >= bytes) return half.memory.subspan(half.end);
    // The other half can be filled only when nothing of it waits to be sent: order is kept.
    if (halves_[1 - filling_].pending() != 0) break;
    filling_ = 1 - filling_;
  }
  return {};
}

void SendBuffers::commit(size_t bytes) noexcept {
  Half& half = halves_[filling_];
  TUCK_CHECK(bytes <= half.memory.size() - half.end);
  half.end += bytes;
}

std::span<const std::byte> SendBuffers::to_send() noexcept {
  if (halves_[sending_].pending() == 0) sending_ = filling_;
  const Half& half = halves_[sending_];
  return half.memory.subspan(half.begin, half.pending());
}

void SendBuffers::sent(size_t bytes) noexcept {
  Half& half = halves_[sending_];
  TUCK_CHECK(bytes <= half.pending());
  half.begin += bytes;
  // At once: what is put into this half from now on goes after what the other one holds.
  if (half.pending() == 0) sending_ = filling_;
}

}  // namespace tuck::nbd

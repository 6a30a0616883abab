// How connections use the memory that they receive into and send from (connection_memory.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/base.h"

namespace tuck::nbd {

// A receive takes in all pipelined requests at once: 64 writes of 4 KiB, or four of 64 KiB.
inline constexpr size_t kReceiveBytes = 256u << 10;
// The longest READ whose reply is put together before its header is final: an error found on the
// way becomes an error reply. Longer ones are answered in pieces.
inline constexpr size_t kWholeReadBytesMax = 256u << 10;
// Besides the data there is room for the headers of as many replies as requests fit a receive.
inline constexpr size_t kSendBytes = kWholeReadBytesMax + (16u << 10);

// What one connection works in.
struct ConnectionBuffers {
  std::span<std::byte> receive;
  std::array<std::span<std::byte>, 2> send;
};

// The bytes that have come and are not used yet, at one place in a row.
class ReceiveBuffer {
 public:
  void reset(std::span<std::byte> memory) noexcept {
    memory_ = memory;
    begin_ = end_ = 0;
    arrivals_ = 0;
  }
  std::span<const std::byte> bytes() const noexcept {
    return memory_.subspan(begin_, end_ - begin_);
  }
  size_t size() const noexcept { return end_ - begin_; }
  void consume(size_t bytes) noexcept {
    TUCK_CHECK(bytes <= size());
    begin_ += bytes;
  }
  // Where the next bytes go. Moves what is left to the front when less than half is free behind it.
  std::span<std::byte> free_part() noexcept;
  // The same without moving anything: what is free behind the bytes that are there.
  std::span<std::byte> free_behind() const noexcept { return memory_.subspan(end_); }
  // bytes have come into the free part, at this time.
  void received(size_t bytes, uint64_t now_ns) noexcept;
  // When the last of the first `bytes` came. Later than that where many receives followed on each
  // other without anything being consumed in between.
  uint64_t arrived_ns(size_t bytes) const noexcept {
    for (size_t i = 0; i + 1 < arrivals_; ++i) {
      if (begin_ + bytes <= arrived_[i].end) return arrived_[i].at_ns;
    }
    return arrivals_ == 0 ? 0 : arrived_[arrivals_ - 1].at_ns;
  }

 private:
  // The bytes in front of `end` that are not in front of another's came at this time.
  struct Arrival {
    size_t end;
    uint64_t at_ns;
  };
  std::span<std::byte> memory_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::array<Arrival, 4> arrived_{};
  size_t arrivals_ = 0;
};

// Two halves: while one is being sent the other is filled. A half goes back to its start when all
// of it has been sent, so that a connection which keeps up works in the same few cache lines.
class SendBuffers {
 public:
  void reset(const std::array<std::span<std::byte>, 2>& halves) noexcept;

  // At least this many free bytes in a row (all that are free in that half), or an empty span: then
  // something has to be sent first. What is reserved stays in place until commit() or the next
  // reserve().
  std::span<std::byte> reserve(size_t bytes) noexcept;
  // The first bytes of what was reserved are ready to be sent.
  void commit(size_t bytes) noexcept;

  // The bytes that are to go next; empty when there are none.
  std::span<const std::byte> to_send() noexcept;
  void sent(size_t bytes) noexcept;
  bool empty() const noexcept { return halves_[0].pending() == 0 && halves_[1].pending() == 0; }

 private:
  struct Half {
    std::span<std::byte> memory;
    size_t begin = 0;  // sent up to here
    size_t end = 0;    // committed up to here
    size_t pending() const noexcept { return end - begin; }
  };
  std::array<Half, 2> halves_;
  size_t filling_ = 0;
  size_t sending_ = 0;
};

}  // namespace tuck::nbd

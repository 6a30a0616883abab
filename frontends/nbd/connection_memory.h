// What connections work in, in two sizes. A client that negotiates has a small block; when it
// enters transmission it gets a large one instead, if one is left: the number of large blocks
// bounds the bytes in flight of all clients together. No client can use another's block, so one
// that floods, or takes no replies, keeps nothing from the rest.
//
// A block holds the machine of the phase (Negotiation or Transmission) and its buffers.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "base/base.h"
#include "frontends/nbd/block_pool.h"
#include "frontends/nbd/buffers.h"
#include "frontends/nbd/negotiation.h"
#include "frontends/nbd/transmission.h"

namespace tuck::nbd {

// A machine in a block, and the buffers beside it.
template <class Machine, size_t kReceive, size_t kSend>
class Workplace {
 public:
  // Behind the machine the buffers begin at a page, so that what is not touched costs nothing.
  static constexpr size_t kMachineBytes = (sizeof(Machine) + kPageSize - 1) & ~(kPageSize - 1);
  static constexpr size_t kBytes = kMachineBytes + kReceive + 2 * kSend;
  static_assert(kReceive % kPageSize == 0 && kSend % kPageSize == 0);
  static_assert(alignof(Machine) <= kPageSize);

  bool there() const noexcept { return block_ != nullptr; }
  explicit operator bool() const noexcept { return machine_ != nullptr; }
  Machine* operator->() const noexcept { return machine_; }

  // False: there is no block left.
  bool take_from(BlockPool& pool) noexcept {
    TUCK_CHECK(block_ == nullptr);
    block_ = pool.take();
    return block_ != nullptr;
  }
  template <class... Args>
  void begin(Args&&... args) noexcept {
    TUCK_CHECK(block_ != nullptr && machine_ == nullptr);
    machine_ = new (block_) Machine(std::forward<Args>(args)...);
  }
  ConnectionBuffers buffers() const noexcept {
    std::byte* at = block_ + kMachineBytes;
    return {{at, kReceive},
            {std::span(at + kReceive, kSend), std::span(at + kReceive + kSend, kSend)}};
  }
  void give_back_to(BlockPool& pool) noexcept {
    if (machine_ != nullptr) machine_->~Machine();
    machine_ = nullptr;
    if (block_ != nullptr) pool.give_back(std::exchange(block_, nullptr));
  }

 private:
  std::byte* block_ = nullptr;
  Machine* machine_ = nullptr;
};

// What a client says before transmission is taken in as it comes; a half holds any answer.
inline constexpr size_t kNegotiationReceiveBytes = 4u << 10;
inline constexpr size_t kNegotiationSendBytes = 12u << 10;
static_assert(kNegotiationSendBytes >= kGreetingBytes + Negotiation::kAnswerBytesMax);

using NegotiationPlace = Workplace<Negotiation, kNegotiationReceiveBytes, kNegotiationSendBytes>;
using TransmissionPlace = Workplace<Transmission, kReceiveBytes, kSendBytes>;
// What is received while negotiating and belongs to transmission moves over.
static_assert(kNegotiationReceiveBytes < kReceiveBytes);

class ConnectionMemory {
 public:
  // As many clients may negotiate as there are connections, and so many be in transmission as fit
  // in_flight_bytes_max (0: all of them).
  // keep: nothing is given back to the system.
  Status map(size_t connections, uint64_t in_flight_bytes_max, bool keep) {
    const uint64_t fit = in_flight_bytes_max / TransmissionPlace::kBytes;
    const size_t transmissions =
        in_flight_bytes_max == 0 ? connections : std::min<size_t>(connections, fit);
    if (Status error = negotiating.map(connections, NegotiationPlace::kBytes,
                                       keep ? connections : kNegotiatingWarm)) {
      return error;
    }
    return transmitting.map(transmissions, TransmissionPlace::kBytes,
                            keep ? transmissions : kTransmittingWarm);
  }

  // Blocks that stay resident when they are given back: enough for one client with several
  // connections to come back to.
  static constexpr size_t kNegotiatingWarm = 8;
  static constexpr size_t kTransmittingWarm = 4;
  static constexpr size_t kWarmBytes =
      kNegotiatingWarm * NegotiationPlace::kBytes + kTransmittingWarm * TransmissionPlace::kBytes;

  BlockPool negotiating;
  BlockPool transmitting;
};

}  // namespace tuck::nbd

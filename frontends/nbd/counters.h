// What a worker counts. One writer (the worker), readers at any time: plain relaxed loads and
// stores, no read-modify-write.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/base.h"
#include "frontends/nbd/protocol.h"

namespace tuck::nbd {

class Counter {
 public:
  // Modulo 2^64, so that add(-n) takes back.
  void add(uint64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

enum class Operation : uint8_t { read, write, trim, write_zeroes, flush, cache, block_status };

inline constexpr std::array<const char*, 7> kOperationNames = {
    "read", "write", "trim", "write_zeroes", "flush", "cache", "block_status"};
inline constexpr size_t kOperations = kOperationNames.size();

// Nothing for DISC and for commands that nobody knows.
constexpr std::optional<Operation> operation_of(Command command) noexcept {
  switch (command) {
    case Command::read:
      return Operation::read;
    case Command::write:
      return Operation::write;
    case Command::trim:
      return Operation::trim;
    case Command::write_zeroes:
      return Operation::write_zeroes;
    case Command::flush:
      return Operation::flush;
    case Command::cache:
      return Operation::cache;
    case Command::block_status:
      return Operation::block_status;
    case Command::disconnect:
      break;
  }
  return std::nullopt;
}

struct OperationCounters {
  Counter requests;
  Counter errors;
  Counter bytes;  // of requests that succeeded
  LatencyHistogram latency;
};

struct alignas(64) WorkerCounters {
  std::array<OperationCounters, kOperations> operations;
  Counter entries_refused;
  Counter negotiations_failed;
  Counter negotiations_timed_out;
  Counter negotiations_over_limits;
  Counter connections_serving;  // now
  Counter connections_broken;
  Counter stalled_requests;
  Counter stalled_replies;
  Counter requests_pending;
};

}  // namespace tuck::nbd

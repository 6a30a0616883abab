// The places for connections, and the memory they work in; all made at start.
#pragma once

#include <memory>
#include <vector>

#include "base/base.h"
#include "frontends/nbd/connection.h"
#include "frontends/nbd/connection_memory.h"

namespace tuck::nbd {

class ConnectionSlots {
 public:
  ConnectionSlots() noexcept = default;

  // in_flight_bytes_max: 0, or what ConnectionMemory is to have for clients in transmission.
  // keep: the memory of clients that are gone stays.
  Status allocate(size_t count, uint64_t in_flight_bytes_max, bool keep) {
    if (Status error = memory_.map(count, in_flight_bytes_max, keep)) return error;
    connections_ = std::make_unique<Connection[]>(count);
    const MutexLock lock(mutex_);
    free_.reserve(count);
    for (size_t i = count; i-- > 0;) {
      connections_[i].set_memory(memory_);
      free_.push_back(&connections_[i]);
    }
    return std::nullopt;
  }
  // nullptr: all are in use.
  Connection* take() noexcept {
    const MutexLock lock(mutex_);
    if (free_.empty()) return nullptr;
    Connection* connection = free_.back();
    free_.pop_back();
    return connection;
  }
  void give_back(Connection& connection) noexcept {
    const MutexLock lock(mutex_);
    free_.push_back(&connection);
  }
  const ConnectionMemory& memory() const noexcept { return memory_; }

 private:
  ConnectionMemory memory_;
  std::unique_ptr<Connection[]> connections_;
  Mutex mutex_{LockRank::server};
  std::vector<Connection*> free_ TUCK_GUARDED_BY(mutex_);
};

}  // namespace tuck::nbd

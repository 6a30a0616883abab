// The places for connections, with their buffers; all made at start.
#pragma once

#include <memory>
#include <vector>

#include "base/base.h"
#include "frontends/nbd/buffers.h"
#include "frontends/nbd/connection.h"

namespace tuck::nbd {

class ConnectionSlots {
 public:
  ConnectionSlots() noexcept = default;

  Status allocate(size_t count) {
    if (Status error = buffers_.map(count)) return error;
    connections_ = std::make_unique<Connection[]>(count);
    const MutexLock lock(mutex_);
    free_.reserve(count);
    for (size_t i = count; i-- > 0;) {
      connections_[i].set_buffers(buffers_.at(i));
      free_.push_back(&connections_[i]);
    }
    return std::nullopt;
  }
  // nullptr: all are in use. The one used last comes first: its memory is there already.
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

 private:
  BufferPool buffers_;
  std::unique_ptr<Connection[]> connections_;
  Mutex mutex_{LockRank::server};
  std::vector<Connection*> free_ TUCK_GUARDED_BY(mutex_);
};

}  // namespace tuck::nbd

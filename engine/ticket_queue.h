// Who waits for room.
#pragma once

#include <condition_variable>

#include "base/base.h"
#include "engine/engine.h"

namespace tuck::engine {

class TicketQueue {
 public:
  // The ticket waits from now on.
  void add(Ticket& ticket) noexcept TUCK_EXCLUDES(lock_);
  // Lets every waiting ticket go.
  void notify_all() noexcept TUCK_EXCLUDES(lock_);
  void wait(Ticket& ticket) noexcept TUCK_EXCLUDES(lock_);
  bool empty() const noexcept TUCK_EXCLUDES(lock_);

 private:
  mutable Mutex lock_{LockRank::tickets};
  std::condition_variable_any changed_;
  // Tickets are owned by their callers, who bound their number.
  Ticket* first_ TUCK_GUARDED_BY(lock_) = nullptr;
};

}  // namespace tuck::engine

// Locks with a rank. A thread takes locks in rising rank only; debug builds abort on an inversion.
// The enum is the lock order: there is no other place that says it.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/annotations.h"
#include "base/sync_point.h"

namespace tuck {

enum class LockRank : uint8_t {
  server,       // frontends: connection lists, mailboxes
  admin,        // engine: areas come and go, settings change
  maintenance,  // engine: one round of background work at a time
  tickets,      // engine: who waits for room
  group,        // engine: publication of the entries of 16 slots
  leaves,       // engine: a leaf of a slot table being populated
  size_class,   // allocator: one class's zspages
  growth,       // allocator: metadata being populated, which may take the system's time
  zspages,      // allocator: descriptors handed out and taken back
  arena,        // allocator: free runs of frames
  log,          // a message may be written under any other lock
};

#if defined(TUCK_DEBUG)
void note_locked(LockRank rank) noexcept;
void note_unlocked(LockRank rank) noexcept;
#else
inline void note_locked(LockRank) noexcept {}
inline void note_unlocked(LockRank) noexcept {}
#endif

// std::mutex with a rank and clang's annotations. Two locks of one rank are never held together.
class TUCK_CAPABILITY("mutex") Mutex {
 public:
  explicit Mutex(LockRank rank) noexcept : rank_(rank) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() noexcept TUCK_ACQUIRE() {
    note_locked(rank_);
    if constexpr (kSyncPoints) {
      // So that a test knows of a thread that it waits for another one.
      if (mutex_.try_lock()) return;
      TUCK_SYNC_POINT("base.mutex.waits");
    }
    mutex_.lock();
  }
  bool try_lock() noexcept TUCK_TRY_ACQUIRE(true) {
    if (!mutex_.try_lock()) return false;
    note_locked(rank_);
    return true;
  }
  void unlock() noexcept TUCK_RELEASE() {
    mutex_.unlock();
    note_unlocked(rank_);
  }
  // For std::condition_variable, whose wait gives the lock up and takes it again.
  std::mutex& native() noexcept { return mutex_; }

 private:
  std::mutex mutex_;
  const LockRank rank_;
};

class TUCK_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) noexcept TUCK_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() TUCK_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace tuck

#include "base/mutex.h"

#if defined(TUCK_DEBUG)

#include "base/check.h"

namespace tuck {
namespace {

// One bit a held rank; a rank is held at most once a thread.
thread_local constinit uint32_t held_ranks = 0;

}  // namespace

void note_locked(LockRank rank) noexcept {
  const uint32_t bit = 1u << static_cast<uint32_t>(rank);
  // Every held rank is lower than the new one.
  TUCK_CHECK(held_ranks < bit);
  held_ranks |= bit;
}

void note_unlocked(LockRank rank) noexcept {
  const uint32_t bit = 1u << static_cast<uint32_t>(rank);
  TUCK_CHECK((held_ranks & bit) != 0);
  held_ranks &= ~bit;
}

}  // namespace tuck

#endif

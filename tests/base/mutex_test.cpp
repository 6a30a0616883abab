#include "base/mutex.h"

#include <gtest/gtest.h>

#include "tests/support/threads.h"

namespace tuck {
namespace {

TEST(Mutex, RisingRanksAreTaken) {
  Mutex group(LockRank::group);
  Mutex size_class(LockRank::size_class);
  Mutex log(LockRank::log);
  for (int i = 0; i < 3; ++i) {
    const MutexLock a(group);
    const MutexLock b(size_class);
    const MutexLock c(log);
  }
}

TEST(Mutex, ReleasedRanksCountNoMore) {
  Mutex group(LockRank::group);
  Mutex arena(LockRank::arena);
  { const MutexLock lock(arena); }
  const MutexLock lock(group);
  // Given back out of order: what is held then is the lower rank alone.
  Mutex size_class(LockRank::size_class);
  size_class.lock();
  size_class.unlock();
  if (!size_class.try_lock()) FAIL() << "nobody holds it";
  size_class.unlock();
}

TEST(Mutex, RanksAreOfTheThreadThatHoldsThem) {
  Mutex low(LockRank::admin);
  Mutex high(LockRank::arena);
  const MutexLock lock(high);
  test::run_threads(1, [&](uint32_t) { const MutexLock other(low); });
}

TEST(Mutex, TryLockOfATakenOneFailsAndNotesNothing) {
  Mutex group(LockRank::group);
  Mutex admin(LockRank::admin);
  const MutexLock lock(group);
  test::run_threads(1, [&](uint32_t) {
    EXPECT_FALSE(group.try_lock());
    // Would abort if group had been noted as held.
    const MutexLock lower(admin);
  });
}

TEST(Mutex, Excludes) {
  Mutex mutex(LockRank::group);
  uint64_t count = 0;
  test::run_threads(4, [&](uint32_t) {
    for (int i = 0; i < 5000; ++i) {
      const MutexLock lock(mutex);
      ++count;
    }
  });
  EXPECT_EQ(count, 20000u);
}

#if defined(TUCK_DEBUG)

// NOLINTBEGIN(clang-analyzer-*): these deadlock on purpose, in a child process.
TEST(MutexDeathTest, FallingRankAborts) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  Mutex group(LockRank::group);
  Mutex size_class(LockRank::size_class);
  EXPECT_DEATH(
      {
        const MutexLock a(size_class);
        const MutexLock b(group);
      },
      "check failed");
}

TEST(MutexDeathTest, TwoOfOneRankAbort) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  Mutex first(LockRank::size_class);
  Mutex second(LockRank::size_class);
  EXPECT_DEATH(
      {
        const MutexLock a(first);
        const MutexLock b(second);
      },
      "check failed");
}

TEST(MutexDeathTest, TryLockIsCheckedToo) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  Mutex group(LockRank::group);
  Mutex admin(LockRank::admin);
  EXPECT_DEATH(
      {
        const MutexLock a(group);
        if (admin.try_lock()) admin.unlock();
      },
      "check failed");
}
// NOLINTEND(clang-analyzer-*)

#else

TEST(MutexDeathTest, RanksAreCheckedInDebugBuildsOnly) {
  GTEST_SKIP() << "a release build does not keep the ranks that a thread holds";
}

#endif

}  // namespace
}  // namespace tuck

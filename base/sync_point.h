// Named places in the product at which a test can stop a thread, so that an interleaving that the
// scheduler brings about once in a million runs is brought about every time.
//
//   product   TUCK_SYNC_POINT("engine.load.entry_read");
//   test      SyncStop stop("engine.load.entry_read");
//             Actor reader([&] { engine.load(...); });   // stops there
//             ASSERT_TRUE(stop.wait_until_reached());
//             engine.free(...);                           // in between
//             stop.let_go();
//
// Built with TUCK_SYNC_POINTS alone (the presets debug, asan, tsan, clang); without, a point is
// nothing at all, and SyncStop a class that does nothing, so that tests compile and skip.
//
// A point that no stop is set for costs one relaxed load: it orders nothing, and so hides nothing
// from TSan.
#pragma once

#include <cstdint>
#include <initializer_list>

#if defined(TUCK_SYNC_POINTS)
#define TUCK_SYNC_POINT(name) ::tuck::reach_sync_point(name)
#else
#define TUCK_SYNC_POINT(name) static_cast<void>(0)
#endif

namespace tuck {

#if defined(TUCK_SYNC_POINTS)

inline constexpr bool kSyncPoints = true;

void reach_sync_point(const char* name) noexcept;

// Set from construction to destruction. The first thread to come to the point stops there until it
// is let go; those behind it pass. The thread that made the stop never stops at it. A thread that
// is not let go within a minute ends the process with the point's name.
class SyncStop {
 public:
  // name: a constant. passes: how many times the point is passed before a thread stops.
  explicit SyncStop(const char* name, uint32_t passes = 0) noexcept;
  // Lets the thread go, and waits until it has gone.
  ~SyncStop();
  SyncStop(const SyncStop&) = delete;
  SyncStop& operator=(const SyncStop&) = delete;

  // Until a thread stands here; false if none has come within a minute.
  bool wait_until_reached() noexcept;
  bool reached() const noexcept;
  void let_go() noexcept;

  // Until a thread stands at one of them; which one, or nullptr after a minute.
  static const SyncStop* wait_for_any(std::initializer_list<SyncStop*> stops) noexcept;
  // For the end of a test that has failed: nobody stops anywhere any more.
  static void let_all_go() noexcept;

 private:
  friend void reach_sync_point(const char* name) noexcept;
  struct Registry;

  const char* const name_;
  const uint64_t owner_;  // the thread that made it
  // All of it guarded by the registry's lock.
  uint32_t passes_;
  bool reached_ = false;
  bool let_go_ = false;
  bool inside_ = false;
  SyncStop* next_ = nullptr;
};

#else

inline constexpr bool kSyncPoints = false;

class SyncStop {
 public:
  explicit SyncStop(const char* /*name*/, uint32_t /*passes*/ = 0) noexcept {}
  SyncStop(const SyncStop&) = delete;
  SyncStop& operator=(const SyncStop&) = delete;
  bool wait_until_reached() noexcept { return false; }
  bool reached() const noexcept { return false; }
  void let_go() noexcept {}
  static const SyncStop* wait_for_any(std::initializer_list<SyncStop*> /*stops*/) noexcept {
    return nullptr;
  }
  static void let_all_go() noexcept {}
};

#endif

}  // namespace tuck

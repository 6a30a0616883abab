// How much work a random or concurrent test does. Sanitizers slow the code by about this factor, so
// the counts go down with them and each program keeps to its minute; TUCK_SOAK multiplies them for
// the hours-long runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace tuck::test {

#if defined(__SANITIZE_THREAD__)
#define TUCK_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TUCK_TEST_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TUCK_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TUCK_TEST_ASAN 1
#endif
#endif

#if defined(TUCK_TEST_TSAN)
inline constexpr uint32_t kSlowdown = 10;
#elif defined(TUCK_TEST_ASAN)
inline constexpr uint32_t kSlowdown = 5;
#elif defined(TUCK_DEBUG)
inline constexpr uint32_t kSlowdown = 2;
#else
inline constexpr uint32_t kSlowdown = 1;
#endif

#if defined(TUCK_TEST_TSAN) || defined(TUCK_TEST_ASAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// count, as it fits this build.
inline uint32_t scaled(uint32_t count) {
  static const uint64_t soak = [] {
    const char* text = std::getenv("TUCK_SOAK");
    return text == nullptr ? 1ull : std::max(1ull, std::strtoull(text, nullptr, 10));
  }();
  const uint64_t wanted = std::max<uint64_t>(1, count / kSlowdown) * soak;
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, 4'000'000'000u));
}

}  // namespace tuck::test

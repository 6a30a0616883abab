// Time as all tables take it: CLOCK_MONOTONIC, and the processors' time of this process.
#pragma once

#include <ctime>

#include <cstdint>

namespace tuck::bench {

inline uint64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

class Stopwatch {
 public:
  Stopwatch() noexcept : begin_(now_ns()) {}
  uint64_t ns() const noexcept { return now_ns() - begin_; }
  double seconds() const noexcept { return static_cast<double>(ns()) / 1e9; }

 private:
  uint64_t begin_;
};

// Keeps the compiler from leaving out what makes value.
template <class T>
inline void keep(const T& value) noexcept {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace tuck::bench

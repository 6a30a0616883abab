// The seed of a random test: TUCK_SEED where it is set, otherwise a new one a process. It is
// printed on first use, so that a failure can be run again.
#pragma once

#include <cstdint>

namespace tuck::test {

uint64_t seed();

// Spreads the bits of a number over 64 (the finaliser of SplitMix64; a bijection).
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e37'79b9'7f4a'7c15u;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebu;
  return x ^ (x >> 31);
}
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  return mix(a ^ mix(b));
}

// A generator that costs a few nanoseconds a number and is the same on every machine.
class Random {
 public:
  explicit constexpr Random(uint64_t seed) : state_(mix(seed)) {}

  constexpr uint64_t next() {
    state_ += 0x9e37'79b9'7f4a'7c15u;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9u;
    x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebu;
    return x ^ (x >> 31);
  }
  // Below limit, which is at least 1.
  constexpr uint64_t below(uint64_t limit) { return next() % limit; }
  constexpr uint32_t below32(uint32_t limit) { return static_cast<uint32_t>(below(limit)); }
  // From low to high, both included.
  constexpr uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  constexpr bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace tuck::test

// An input begins with bytes that say how the rest is fed: which variant, and a seed for the sizes
// of the pieces. A fuzzer changes them like all others.
#pragma once

#include <cstdint>

#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/seed.h"

namespace tuck::test {

// Takes the first byte off; 0 where there is none.
inline uint8_t take_byte(FuzzInput& input) {
  if (input.empty()) return 0;
  const auto byte = static_cast<uint8_t>(input.front());
  input = input.subspan(1);
  return byte;
}

inline std::string_view as_text(FuzzInput input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// Sizes of pieces, by a seed of one byte: 0 is everything at once, small seeds make for small
// pieces. After many of them the rest comes at once, so that no input takes long for that alone.
class PieceSizes {
 public:
  explicit PieceSizes(uint8_t seed) : seed_(seed), random_(seed) {}
  size_t next() {
    if (seed_ == 0 || ++pieces_ > kPiecesMax) return SIZE_MAX;
    if (seed_ < 4) return seed_;
    const uint64_t most = uint64_t{1} << random_.below(seed_ < 64 ? 8 : 20);
    return static_cast<size_t>(random_.between(1, most));
  }

 private:
  static constexpr uint32_t kPiecesMax = 4096;
  const uint8_t seed_;
  uint32_t pieces_ = 0;
  Random random_;
};

}  // namespace tuck::test

#include "tests/support/seed.h"

#include <cstdio>
#include <cstdlib>
#include <random>

namespace tuck::test {

uint64_t seed() {
  static const uint64_t chosen = [] {
    uint64_t number = 0;
    if (const char* text = std::getenv("TUCK_SEED"); text != nullptr) {
      number = std::strtoull(text, nullptr, 0);
    } else {
      std::random_device device;
      number = device();
    }
    std::printf("TUCK_SEED=%llu\n", static_cast<unsigned long long>(number));
    std::fflush(stdout);
    return number;
  }();
  return chosen;
}

}  // namespace tuck::test

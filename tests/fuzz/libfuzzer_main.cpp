// libFuzzer's entry, for the target that the build names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string wrong = tuck::test::TUCK_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "WRONG: %s\n", wrong.c_str());
  std::abort();
}

// Writes a target's seeds into a folder, one file each, for a fuzzer to begin with.
//   fuzz_seeds TARGET FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/fuzz_targets.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: fuzz_seeds TARGET FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder(argv[2]);
  std::filesystem::create_directories(folder);
  size_t number = 0;
  for (const auto& seed : tuck::test::fuzz_seeds(argv[1])) {
    std::ofstream file(folder / (seed.name + "-" + std::to_string(number++)), std::ios::binary);
    file << seed.bytes;
    if (!file.flush()) {
      std::fprintf(stderr, "fuzz_seeds: cannot write into %s\n", argv[2]);
      return 1;
    }
  }
  return 0;
}

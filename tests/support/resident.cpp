#include "tests/support/resident.h"

#include <cstdio>
#include <cstring>
#include <memory>

namespace tuck::test {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

uint64_t resident_bytes(const void* begin, size_t length) {
  const File file(std::fopen("/proc/self/smaps", "re"));
  if (!file) return 0;
  const auto low = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t high = low + length;
  bool inside = false;
  uint64_t kib = 0;
  char line[512];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned long from = 0;
    unsigned long to = 0;
    unsigned long amount = 0;
    if (std::sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = from >= low && to <= high;
    if (inside && std::sscanf(line, "Rss: %lu kB", &amount) == 1) kib += amount;
  }
  return kib * 1024;
}

uint64_t process_resident_bytes() {
  const File file(std::fopen("/proc/self/status", "re"));
  if (!file) return 0;
  char line[256];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned long kib = 0;
    if (std::sscanf(line, "VmRSS: %lu kB", &kib) == 1) return uint64_t{kib} * 1024;
  }
  return 0;
}

}  // namespace tuck::test

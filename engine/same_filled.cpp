#include "engine/same_filled.h"

#include <cstring>

namespace tuck::engine {

bool is_same_filled(const std::byte* page, uint64_t* word) noexcept {
  uint64_t first = 0;
  uint64_t last = 0;
  std::memcpy(&first, page, sizeof first);
  std::memcpy(&last, page + kPageSize - sizeof last, sizeof last);
  // Most other pages are told here, by two words a page apart.
  if (first != last) return false;
  // Every word equals its neighbour; the C library's memcmp is vectorised.
  if (std::memcmp(page, page + sizeof first, kPageSize - sizeof first) != 0) return false;
  *word = first;
  return true;
}

void fill_page(std::byte* page, uint64_t word) noexcept {
  if (word == 0) {
    std::memset(page, 0, kPageSize);
    return;
  }
  for (uint32_t at = 0; at < kPageSize; at += sizeof word)
    std::memcpy(page + at, &word, sizeof word);
}

}  // namespace tuck::engine

#include "bench/micro/page_set.h"

#include <algorithm>
#include <cstring>

#include "bench/corpus/corpus.h"
#include "bench/corpus/synthetic_kinds.h"
#include "engine/same_filled.h"

namespace tuck::bench::micro {

namespace {

constexpr uint64_t kSeed = 1;
// quick_pages(): above it a page would be kept as it is.
constexpr uint64_t kQuickBytesMax = 3072;

void fill_random(std::byte* out, size_t bytes, corpus::Random& random) {
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(out + at, &word, std::min(sizeof word, bytes - at));
  }
}

}  // namespace

PageSet synthetic_pages(uint64_t pages) {
  PageSet set(pages);
  const corpus::SyntheticPages generator(kSeed);
  uint64_t index = 0;
  uint64_t word = 0;
  for (uint64_t i = 0; i < pages; ++i) {
    const std::span<std::byte, kPageSize> page(set.page(i), kPageSize);
    do {
      generator.fill(index++, page);
    } while (engine::is_same_filled(page.data(), &word));
  }
  return set;
}

PageSet same_filled_pages(uint64_t pages) {
  PageSet set(pages);
  for (uint64_t i = 0; i < pages; ++i)
    engine::fill_page(set.page(i), i);
  return set;
}

PageSet incompressible_pages(uint64_t pages) {
  PageSet set(pages);
  corpus::Random random(kSeed);
  fill_random(set.page(0), pages * kPageSize, random);
  return set;
}

PageSet quick_pages(uint64_t pages) {
  PageSet set(pages);
  corpus::Random random(kSeed);
  for (uint64_t i = 0; i < pages; ++i)
    fill_random(set.page(i), 16 + random.below(kQuickBytesMax), random);
  return set;
}

}  // namespace tuck::bench::micro

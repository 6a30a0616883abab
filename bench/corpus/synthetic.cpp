#include "bench/corpus/synthetic.h"

#include <array>
#include <cstring>

#include "bench/corpus/synthetic_kinds.h"

namespace tuck::corpus {

namespace {

// Pages of one run lie in one neighbourhood and are mostly of one kind. 32 pages: long against a
// unit, short enough that a few thousand pages have the whole mix.
constexpr uint64_t kRunPages = 32;
// Kinds are dealt to runs in steps of the golden section of 1024, so that any stretch of runs has
// the mix and not only a long one.
constexpr uint64_t kDealStep = 633;

// How often each kind comes, of 1024 runs; README.md tells how the figures were found.
struct Weight {
  Kind kind;
  uint32_t of_1024;
};
constexpr std::array kMix = {
    Weight{Kind::records, 336},   Weight{Kind::objects, 310}, Weight{Kind::tagged, 70},
    Weight{Kind::hash_table, 64}, Weight{Kind::text, 56},     Weight{Kind::wide_text, 40},
    Weight{Kind::rows, 60},       Weight{Kind::sparse, 76},   Weight{Kind::packed, 12},
};

// Of 1024 pages.
constexpr uint32_t kSameFilled = 30;
constexpr uint32_t kZeroOfSameFilled = 720;
// A page among another kind's: heaps are not sorted.
constexpr uint32_t kStray = 130;
// A page that is in use to its end only in part.
constexpr uint32_t kPartial = 90;

// at is below 1024.
Kind kind_at(uint64_t at) noexcept {
  for (const Weight& weight : kMix) {
    if (at < weight.of_1024) return weight.kind;
    at -= weight.of_1024;
  }
  return Kind::records;
}

uint64_t mix(uint64_t seed, uint64_t number) noexcept {
  return Random(seed ^ Random(number).next()).next();
}

Neighbourhood neighbourhood_of(uint64_t run_seed) noexcept {
  Random random(run_seed);
  Neighbourhood near;
  near.seed = random.next();
  near.heap = 0x00007f0000000000u + (random.below(1u << 24) << 16);
  near.types = 0x0000560000000000u + (random.below(1u << 22) << 12);
  near.words = static_cast<uint32_t>(300 + random.below(1500));
  near.record_words = static_cast<uint32_t>(4 + random.below(9));
  near.copies_of_1024 = static_cast<uint32_t>(100 + random.below(600));
  return near;
}

void fill_same(Random& random, std::span<std::byte, kPageSize> out) noexcept {
  uint64_t word = 0;
  if (!random.chance(kZeroOfSameFilled)) word = (1 + random.below(255)) * 0x0101010101010101u;
  for (size_t at = 0; at < kPageSize; at += sizeof(word)) {
    std::memcpy(out.data() + at, &word, sizeof(word));
  }
}

}  // namespace

void SyntheticPages::fill(uint64_t index, std::span<std::byte, kPageSize> out) const noexcept {
  const uint64_t run = index / kRunPages;
  Kind kind = kind_at((mix(seed_, ~0ull) + run * kDealStep) % 1024);
  Random random(mix(seed_ + 1, index));
  if (random.chance(kSameFilled)) return fill_same(random, out);
  if (random.chance(kStray)) kind = kind_at(random.below(1024));

  PageWriter page(out);
  // Two words that only this page has: its own address, as allocators keep at the start of their
  // blocks. They make every page different from every other, and from a same-filled one.
  page.word(0x0000700000000000u + index * kPageSize);
  page.word(index + 1);
  fill_kind(kind, neighbourhood_of(mix(seed_, run)), random, page);
  if (kind != Kind::packed && random.chance(kPartial)) {
    const uint64_t used = 16 + 8 * random.below(kPageSize / 8 - 2);
    std::memset(out.data() + used, 0, kPageSize - used);
  }
}

}  // namespace tuck::corpus

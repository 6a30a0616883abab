#include "bench/corpus/synthetic.h"

#include <array>
#include <cstring>

#include "bench/corpus/synthetic_kinds.h"

namespace tuck::corpus {

namespace {

// Pages of one run lie in one neighbourhood and are mostly of one kind. 64 pages: long against a
// unit, short enough that a few thousand pages have the whole mix.
constexpr uint64_t kRunPages = 64;

// How often each kind comes, of 1024 runs; README.md tells how the figures were found.
struct Weight {
  Kind kind;
  uint32_t of_1024;
};
constexpr std::array kMix = {
    Weight{Kind::records, 300},   Weight{Kind::objects, 240}, Weight{Kind::tagged, 100},
    Weight{Kind::hash_table, 70}, Weight{Kind::text, 90},     Weight{Kind::wide_text, 50},
    Weight{Kind::rows, 80},       Weight{Kind::sparse, 80},   Weight{Kind::packed, 14},
};

// Of 1024 pages.
constexpr uint32_t kSameFilled = 30;
constexpr uint32_t kZeroOfSameFilled = 720;
// A page among another kind's: heaps are not sorted.
constexpr uint32_t kStray = 130;
// A page that is in use to its end only in part.
constexpr uint32_t kPartial = 90;

Kind pick_kind(Random& random) noexcept {
  uint64_t at = random.below(1024);
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
  const uint64_t run_seed = mix(seed_, index / kRunPages);
  Random run_random(run_seed + 1);
  Kind kind = pick_kind(run_random);
  Random random(mix(seed_ + 1, index));
  if (random.chance(kSameFilled)) return fill_same(random, out);
  if (random.chance(kStray)) kind = pick_kind(random);

  PageWriter page(out);
  // Two words that only this page has: its own address, as allocators keep at the start of their
  // blocks. They make every page different from every other, and from a same-filled one.
  page.word(0x0000700000000000u + index * kPageSize);
  page.word(index + 1);
  fill_kind(kind, neighbourhood_of(run_seed), random, page);
  if (kind != Kind::packed && random.chance(kPartial)) {
    const uint64_t used = 16 + 8 * random.below(kPageSize / 8 - 2);
    std::memset(out.data() + used, 0, kPageSize - used);
  }
}

}  // namespace tuck::corpus

#include "tests/support/pages.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/support/seed.h"

namespace tuck::test {
namespace {

constexpr uint32_t kWords = kPageSize / sizeof(uint64_t);
constexpr uint64_t kVersionMask = kVersions - 1;

uint64_t key_hash(const PageKey& key) {
  return mix(key.seed, (static_cast<uint64_t>(key.area) << 32) | key.slot);
}

// Words of every kind but zero begin with this: the version in the low 24 bits, hidden by the
// slot's hash, so that another slot's page shows a version that nobody wrote.
uint64_t tag(const PageKey& key) {
  return (key.version ^ key_hash(key)) & kVersionMask;
}

void repeat(uint64_t word, std::byte* page) {
  for (uint32_t i = 0; i < kWords; ++i)
    std::memcpy(page + i * sizeof word, &word, sizeof word);
}

void put_word(std::byte* page, uint32_t index, uint64_t word) {
  std::memcpy(page + index * sizeof word, &word, sizeof word);
}

uint64_t word_at(const std::byte* page, uint32_t index) {
  uint64_t word = 0;
  std::memcpy(&word, page + index * sizeof word, sizeof word);
  return word;
}

void fill_random(Random& random, std::byte* begin, size_t length) {
  while (length >= sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(begin, &word, sizeof word);
    begin += sizeof word;
    length -= sizeof word;
  }
  const uint64_t word = random.next();
  std::memcpy(begin, &word, length);
}

// Words of 3 to 12 letters out of a vocabulary of 24 to 96; a number now and then.
void fill_text(Random& random, std::byte* page) {
  const uint64_t vocabulary = random.between(24, 96);
  uint32_t at = 0;
  while (at < kPageSize) {
    Random spelling(random.below(vocabulary) * 77 + 5);
    const auto letters = static_cast<uint32_t>(spelling.between(3, 12));
    for (uint32_t i = 0; i < letters && at < kPageSize; ++i) {
      page[at++] = static_cast<std::byte>('a' + spelling.below(26));
    }
    if (random.one_in(12)) {
      for (uint32_t i = 0; i < 4 && at < kPageSize; ++i) {
        page[at++] = static_cast<std::byte>('0' + random.below(10));
      }
    }
    if (at < kPageSize) page[at++] = std::byte{' '};
  }
}

// Random bytes, with a stretch of 24 … 300 bytes repeated here and there.
void fill_light(Random& random, std::byte* page) {
  fill_random(random, page, kPageSize);
  for (uint32_t i = 0; i < 3; ++i) {
    const auto length = static_cast<uint32_t>(random.between(24, 300));
    const uint32_t from = random.below32(kPageSize - length);
    const uint32_t to = random.below32(kPageSize - length);
    std::memmove(page + to, page + from, length);
  }
}

void fill_mixed(Random& random, std::byte* page) {
  const uint32_t length = random.below32(kPageSize + 1);
  fill_random(random, page, length);
  std::memset(page + length, static_cast<int>(random.below(256)), kPageSize - length);
}

}  // namespace

PageKind kind_for(const PageKey& key) {
  // Of 32: as they come, so that each kind is met often in a short run.
  static constexpr std::array<PageKind, 32> kWeighted = {
      PageKind::zero,        PageKind::zero,        PageKind::zero,      PageKind::same_word,
      PageKind::same_word,   PageKind::same_half,   PageKind::same_half, PageKind::same_other,
      PageKind::nearly_zero, PageKind::nearly_zero, PageKind::text,      PageKind::text,
      PageKind::text,        PageKind::text,        PageKind::text,      PageKind::text,
      PageKind::text,        PageKind::text,        PageKind::light,     PageKind::light,
      PageKind::mixed,       PageKind::mixed,       PageKind::mixed,     PageKind::mixed,
      PageKind::mixed,       PageKind::mixed,       PageKind::mixed,     PageKind::nearly_same,
      PageKind::nearly_same, PageKind::random,      PageKind::random,    PageKind::random};
  return kWeighted[mix(key_hash(key), key.version) % kWeighted.size()];
}

void fill_page(const PageKey& key, PageKind kind, std::byte* page) {
  Random random(
      mix(key_hash(key), (static_cast<uint64_t>(key.version) << 8) | static_cast<uint64_t>(kind)));
  // 0x5a at the top: neither a sign-extended 56-bit word nor zero.
  const uint64_t other = 0x5a00'0000'0000'0000u | (random.next() >> 32 << 24) | tag(key);
  switch (kind) {
    case PageKind::zero:
      std::memset(page, 0, kPageSize);
      return;
    case PageKind::same_word: {
      // Bit 54 keeps it off zero; bit 55 is the sign, so that both signs come up.
      const uint64_t sign = random.one_in(2) ? 0xff80'0000'0000'0000u : 0;
      repeat((other & 0x000f'ffff'ffff'ffffu) | 0x0040'0000'0000'0000u | sign, page);
      return;
    }
    case PageKind::same_half: {
      const uint64_t half = 0x5a00'0000u | tag(key);
      repeat((half << 32) | half, page);
      return;
    }
    case PageKind::same_other:
      repeat(other, page);
      return;
    case PageKind::nearly_zero:
      std::memset(page, 0, kPageSize);
      put_word(page, random.below32(kWords), other);
      return;
    case PageKind::nearly_same:
      repeat(other, page);
      put_word(page, random.below32(kWords), other ^ (1ull << random.between(24, 55)));
      return;
    case PageKind::text:
      fill_text(random, page);
      break;
    case PageKind::light:
      fill_light(random, page);
      break;
    case PageKind::mixed:
      fill_mixed(random, page);
      break;
    case PageKind::random:
      fill_random(random, page, kPageSize);
      break;
  }
  put_word(page, 0, other);
}

bool is_page(const PageKey& key, PageKind kind, const std::byte* page) {
  Page wanted;
  fill_page(key, kind, wanted.data());
  if (std::memcmp(wanted.data(), page, kPageSize) == 0) return true;
  const auto* const other = std::mismatch(wanted.begin(), wanted.end(), page).second;
  const auto version = version_of(key, page);
  std::printf("slot %u of area %u: not version %u (%s): byte %td differs; looks like %s %u\n",
              key.slot, key.area, key.version, name_of(kind), other - page,
              version ? "version" : "zeroes", version.value_or(0));
  return false;
}

bool is_zero_page(const std::byte* page) {
  return std::all_of(page, page + kPageSize, [](std::byte b) { return b == std::byte{0}; });
}

std::optional<uint32_t> version_of(const PageKey& key, const std::byte* page) {
  for (uint32_t i = 0; i < kWords; ++i) {
    const uint64_t word = word_at(page, i);
    if (word != 0) return static_cast<uint32_t>((word ^ key_hash(key)) & kVersionMask);
  }
  return std::nullopt;
}

const char* name_of(PageKind kind) {
  static constexpr std::array<const char*, kPageKinds> kNames = {
      "zero",        "same_word", "same_half", "same_other", "nearly_zero",
      "nearly_same", "text",      "light",     "mixed",      "random"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace tuck::test

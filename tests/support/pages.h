// Page contents that can be told apart and made again: every byte follows from (seed, area, slot,
// version, kind), so an oracle keeps a version a slot and still checks every byte, and a page that
// is torn, stale or another slot's is found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace tuck::test {

enum class PageKind : uint8_t {
  zero,
  same_word,    // one 64-bit word that is a sign-extended 56-bit one: held in an entry
  same_half,    // one 32-bit word, not a 56-bit one when doubled: held in an entry
  same_other,   // one 64-bit word that no entry can hold: compressed
  nearly_zero,  // one word that is not zero, at any place
  nearly_same,  // one word repeated, another one at any place
  text,         // words of a small dictionary: two to three times smaller under lz4
  light,        // hardly compressible: a bit below a raw page
  mixed,        // random bytes up to any length, then a repeated one: every object size comes up
  random,       // incompressible
};
inline constexpr uint32_t kPageKinds = 10;

struct PageKey {
  uint64_t seed = 0;
  uint32_t area = 0;
  uint32_t slot = 0;
  // Told from the page by version_of(); below kVersions.
  uint32_t version = 0;

  friend bool operator==(const PageKey&, const PageKey&) = default;
};
inline constexpr uint32_t kVersions = 1u << 24;

using Page = std::array<std::byte, kPageSize>;
// On the heap: a run of pages.
using Pages = std::vector<std::byte>;

// A kind that follows from the key, weighted as a swapped-out heap may be.
PageKind kind_for(const PageKey& key);

void fill_page(const PageKey& key, PageKind kind, std::byte* page);
// Whether each byte of the page is what fill_page() writes. If not, says where the first other byte
// is, and which version it looks like.
bool is_page(const PageKey& key, PageKind kind, const std::byte* page);
bool is_zero_page(const std::byte* page);

// The version in a page of the key's seed, area and slot (its own version does not count): only a
// guess until is_page() has agreed. Nothing for a page of zeroes.
std::optional<uint32_t> version_of(const PageKey& key, const std::byte* page);

// What a page is, in a word, for failure messages.
const char* name_of(PageKind kind);

}  // namespace tuck::test

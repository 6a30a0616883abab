#include "bench/corpus/synthetic_kinds.h"

#include <array>
#include <string_view>

namespace tuck::corpus {

namespace {

// Things that a neighbourhood has several copies of.
constexpr uint64_t kCopied = 500;

constexpr std::array<std::string_view, 32> kSyllables = {
    "an", "ber", "co", "den", "el",   "for", "ge", "hal",  "in",  "ju", "ka",
    "lo", "mar", "ne", "or",  "pre",  "qui", "re", "sta",  "ter", "un", "ver",
    "wa", "xi",  "yo", "zen", "tion", "ing", "ed", "ment", "ble", "s"};

// A word is its number's syllables, so that no table is needed; low numbers are short and frequent.
size_t spell(const Neighbourhood& near, uint64_t number, std::array<char, 32>& out) noexcept {
  Random random(near.seed ^ (number * 0xd6e8feb86659fd93u));
  size_t size = 0;
  const uint64_t syllables = 1 + (number > 8) + random.below(2) + (number > 200);
  for (uint64_t i = 0; i < syllables; ++i) {
    const std::string_view part = kSyllables[random.below(kSyllables.size())];
    std::memcpy(out.data() + size, part.data(), part.size());
    size += part.size();
  }
  return size;
}

size_t spell_number(uint64_t value, std::array<char, 32>& out) noexcept {
  std::array<char, 32> reversed;
  size_t size = 0;
  do {
    reversed[size++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  for (size_t i = 0; i < size; ++i)
    out[i] = reversed[size - 1 - i];
  return size;
}

// The next word of a text, mostly from the vocabulary, now and then a number.
size_t next_word(const Neighbourhood& near, Random& random, std::array<char, 32>& out) noexcept {
  if (random.chance(90)) return spell_number(random.below(100000), out);
  return spell(near, random.skewed(near.words), out);
}

uint64_t pointer(const Neighbourhood& near, Random& random) noexcept {
  // Few objects are pointed to from everywhere; most are pointed to once, from nearby.
  if (random.chance(380)) return near.heap + (near.seed % 509 + random.skewed(400)) * 1072;
  return near.heap + random.below(1u << 15) * 16;
}

uint64_t type_pointer(const Neighbourhood& near, Random& random) noexcept {
  return near.types + random.skewed(24) * 416;
}

// Where the content of the next thing comes from: the page, or one of the things of which the
// neighbourhood has several copies. Copies in one page are rare, in four pages less so, which is
// what larger units gain from.
Random source_of(const Neighbourhood& near, Random& random) noexcept {
  if (random.chance(near.copies_of_1024)) {
    return Random(near.seed * 3 + random.skewed(kCopied) * 0x51ed270b);
  }
  return Random(random.next());
}

void records(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  while (!out.full()) {
    Random own = source_of(near, random);
    // The shape of a record: what each of its words holds.
    Random shape(near.seed + own.skewed(3));
    out.word(type_pointer(near, shape));
    for (uint32_t i = 1; i < near.record_words; ++i) {
      switch (shape.below(8)) {
        case 0:
        case 1:
          out.word(own.chance(700) ? pointer(near, own) : 0);
          break;
        case 2:
          out.word(own.skewed(1u << 12));
          break;
        case 3:
          out.half(own.below(4));
          out.half(own.skewed(1u << 16));
          break;
        case 4:
          out.word(shape.chance(300) ? own.next() >> 12 | 0x4080000000000000u : 1);
          break;
        default:
          out.word(0);
      }
    }
  }
}

void objects(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  std::array<char, 32> text;
  const auto texts_of_1024 = static_cast<uint32_t>(near.seed % 700);
  const size_t unused = 8 * (near.seed >> 32) % 80;
  while (!out.full()) {
    Random own = source_of(near, random);
    out.word(1 + own.skewed(6));
    out.word(type_pointer(near, own));
    if (own.chance(texts_of_1024)) {
      const size_t size = next_word(near, own, text);
      out.word(size);
      out.word(own.chance(400) ? own.next() : ~0ull);
      out.word(0xe4);
      out.word(0);
      out.bytes(text.data(), size);
      out.zeroes(1);
      out.align(16);
    } else {
      out.word(pointer(near, own));
      out.word(own.chance(400) ? pointer(near, own) : 0);
      out.word(own.skewed(300));
      out.zeroes(unused);
    }
  }
}

void tagged(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  const uint64_t bound = 1ull << (near.seed % 14);
  while (!out.full()) {
    Random own = source_of(near, random);
    const uint64_t length = 2 + own.skewed(60);
    const bool integers = own.chance(600);
    out.word(near.types | 1);
    out.word(length << 32);
    for (uint64_t i = 0; i < length; ++i) {
      out.word(integers ? own.skewed(bound) << 32 : pointer(near, own) | 1);
    }
  }
}

void hash_table(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  while (!out.full()) {
    if (random.chance(512)) {
      out.zeroes(24);
      continue;
    }
    out.word(random.next() >> (near.seed & 32));
    out.word(pointer(near, random));
    out.word(pointer(near, random));
  }
}

void text(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  std::array<char, 32> word;
  while (!out.full()) {
    Random own = source_of(near, random);
    out.bytes("\n                ", 1 + 2 * own.below(7));
    for (uint64_t words = 1 + own.below(9); words > 0; --words) {
      out.bytes(word.data(), next_word(near, own, word));
      out.byte(own.chance(120) ? ',' : ' ');
    }
  }
}

void wide_text(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  std::array<char, 32> word;
  while (!out.full()) {
    Random own = source_of(near, random);
    for (uint64_t words = 1 + own.below(6); words > 0; --words) {
      const size_t size = next_word(near, own, word);
      for (size_t i = 0; i < size; ++i) {
        out.byte(static_cast<unsigned char>(word[i]));
        out.byte(0);
      }
      out.byte(' ');
      out.byte(0);
    }
  }
}

void rows(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  std::array<char, 32> word;
  for (uint64_t key = random.next() & 0xffffff; !out.full(); ++key) {
    out.byte(6);
    out.byte(0x23);
    out.byte(static_cast<unsigned>(13 + 2 * random.below(12)));
    for (unsigned shift : {16u, 8u, 0u})
      out.byte(static_cast<unsigned>(key >> shift) & 0xff);
    const uint64_t amount = random.next();
    out.bytes(&amount, 2 + near.seed % 3);
    out.bytes("SKU-", 4);
    out.bytes(word.data(), spell_number(random.below(99999), word));
    out.bytes(word.data(), spell(near, random.skewed(100), word));
    out.byte(' ');
    out.bytes(word.data(), spell(near, random.skewed(100), word));
  }
}

void sparse(Random& random, PageWriter& out) noexcept {
  const uint64_t gap = 2 + random.below(60);
  while (!out.full()) {
    out.zeroes(8 * (1 + random.skewed(4 * gap)));
    out.word(1 + random.skewed(1u << 20));
  }
}

void packed(Random& random, PageWriter& out) noexcept {
  while (!out.full())
    out.word(random.next());
}

}  // namespace

void fill_kind(Kind kind, const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  switch (kind) {
    case Kind::records:
      return records(near, random, out);
    case Kind::objects:
      return objects(near, random, out);
    case Kind::tagged:
      return tagged(near, random, out);
    case Kind::hash_table:
      return hash_table(near, random, out);
    case Kind::text:
      return text(near, random, out);
    case Kind::wide_text:
      return wide_text(near, random, out);
    case Kind::rows:
      return rows(near, random, out);
    case Kind::sparse:
      return sparse(random, out);
    case Kind::packed:
      return packed(random, out);
  }
}

}  // namespace tuck::corpus

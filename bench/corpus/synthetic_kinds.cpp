#include "bench/corpus/synthetic_kinds.h"

#include <array>
#include <string_view>

namespace tuck::corpus {

namespace {

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

void records(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  // The shape of a record: what each of its words holds.
  while (!out.full()) {
    Random shape(near.seed + random.skewed(3));
    out.word(type_pointer(near, shape));
    for (uint32_t i = 1; i < near.record_words; ++i) {
      switch (shape.below(8)) {
        case 0:
        case 1:
        case 2:
          out.word(random.chance(700) ? pointer(near, random) : 0);
          break;
        case 3:
          out.word(random.skewed(1u << 12));
          break;
        case 4:
          out.half(random.below(4));
          out.half(random.skewed(1u << 16));
          break;
        case 5:
          out.word(shape.chance(300) ? random.next() >> 12 | 0x4080000000000000u : 1);
          break;
        default:
          out.word(0);
      }
    }
  }
}

void objects(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  std::array<char, 32> text;
  while (!out.full()) {
    out.word(1 + random.skewed(6));
    out.word(type_pointer(near, random));
    if (random.chance(512)) {
      const size_t size = next_word(near, random, text);
      out.word(size);
      out.word(random.chance(480) ? random.next() : ~0ull);
      out.word(0xe4);
      out.word(0);
      out.bytes(text.data(), size);
      out.zeroes(1);
      out.align(16);
    } else {
      out.word(pointer(near, random));
      out.word(random.chance(600) ? pointer(near, random) : 0);
      out.word(random.skewed(300));
      out.word(0);
    }
  }
}

void tagged(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  while (!out.full()) {
    const uint64_t length = 4 + random.skewed(120);
    const bool integers = random.chance(512);
    out.word(near.types | 1);
    out.word(length << 32);
    for (uint64_t i = 0; i < length; ++i) {
      out.word(integers ? random.skewed(1u << 16) << 32 : pointer(near, random) | 1);
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
  for (uint64_t i = 1; !out.full(); ++i) {
    out.bytes(word.data(), next_word(near, random, word));
    if (random.chance(60)) {
      out.bytes(",\n        \"", 2 + near.seed % 8);
    } else {
      out.byte(' ');
    }
  }
}

void wide_text(const Neighbourhood& near, Random& random, PageWriter& out) noexcept {
  std::array<char, 32> word;
  while (!out.full()) {
    const size_t size = next_word(near, random, word);
    for (size_t i = 0; i < size; ++i) {
      out.byte(static_cast<unsigned char>(word[i]));
      out.byte(0);
    }
    out.byte(' ');
    out.byte(0);
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
    out.bytes(&amount, 3 + near.seed % 4);
    out.bytes("SKU-", 4);
    out.bytes(word.data(), spell_number(random.below(99999), word));
    out.bytes(word.data(), next_word(near, random, word));
    out.byte(' ');
    out.bytes(word.data(), next_word(near, random, word));
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

// The kinds of content that synthetic pages are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/base.h"

namespace tuck::corpus {

// splitmix64: small, fast, and the same everywhere (the standard's distributions are not).
class Random {
 public:
  explicit constexpr Random(uint64_t state) noexcept : state_(state) {}

  constexpr uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 … bound - 1; bound up to 2^32.
  constexpr uint64_t below(uint64_t bound) noexcept { return ((next() >> 32) * bound) >> 32; }
  // True in that many of 1024 cases.
  constexpr bool chance(uint32_t of_1024) noexcept { return below(1024) < of_1024; }
  // As below(), small values much more often than large ones: as words, types and sizes are.
  constexpr uint64_t skewed(uint64_t bound) noexcept { return below(below(below(bound) + 1) + 1); }

 private:
  uint64_t state_;
};

// Fills a page from front to back; what does not fit is cut off.
class PageWriter {
 public:
  explicit PageWriter(std::span<std::byte, kPageSize> page) noexcept : page_(page) {}

  bool full() const noexcept { return at_ == kPageSize; }
  void bytes(const void* data, size_t size) noexcept {
    const size_t fits = size < kPageSize - at_ ? size : kPageSize - at_;
    std::memcpy(page_.data() + at_, data, fits);
    at_ += fits;
  }
  void byte(unsigned value) noexcept {
    if (!full()) page_[at_++] = static_cast<std::byte>(value);
  }
  // Little-endian, as all machines that this project runs on.
  void word(uint64_t value) noexcept { bytes(&value, sizeof(value)); }
  void half(uint64_t value) noexcept { bytes(&value, sizeof(uint32_t)); }
  void zeroes(size_t size) noexcept {
    const size_t fits = size < kPageSize - at_ ? size : kPageSize - at_;
    std::memset(page_.data() + at_, 0, fits);
    at_ += fits;
  }
  void align(size_t to) noexcept { zeroes((to - at_ % to) % to); }

 private:
  std::span<std::byte, kPageSize> page_;
  size_t at_ = 0;
};

// What neighbouring pages share, derived from the run's number: where the objects lie that they
// point to, their types, their words.
struct Neighbourhood {
  uint64_t seed = 0;
  uint64_t heap = 0;          // where its objects lie
  uint64_t types = 0;         // where their type descriptors lie
  uint32_t words = 0;         // size of the vocabulary
  uint32_t record_words = 0;  // size of its records in 8-byte words
  // Of 1024 things, how many are copies of one that is elsewhere in the neighbourhood, too.
  uint32_t copies_of_1024 = 0;
};

enum class Kind : uint8_t {
  records,     // structs of pointers, small numbers and zeroes
  objects,     // objects with a header, a hash and a short string, as of an interpreter
  tagged,      // arrays of tagged small integers and pointers
  hash_table,  // slots of hash, key and value, half of them empty
  text,        // words and numbers
  wide_text,   // the same in 16-bit characters
  rows,        // database rows: packed numbers and short texts
  sparse,      // a few numbers in zeroes
  packed,      // compressed already
};

// Fills the rest of a page.
void fill_kind(Kind kind, const Neighbourhood& near, Random& random, PageWriter& out) noexcept;

}  // namespace tuck::corpus

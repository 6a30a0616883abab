// A slot's 8-byte word.
//
//   kind        bits 63…61   empty 0, same word 1, same half 2, memory 3, cold 4
//   same word   bits 55…0    the repeated 64-bit word, where it is this value sign-extended
//   same half   bits 31…0    the repeated 32-bit word
//   memory      age 60…59, order 58…57, codec 56…54, length 53…37, location 36…0
//
// cold is for units on the cold tier; nothing makes such entries yet. An untouched leaf is all
// zeroes, hence all empty.
#pragma once

#include <bit>
#include <cstdint>

#include "base/base.h"

namespace tuck::engine {

enum class EntryKind : uint8_t { empty = 0, same_word = 1, same_half = 2, memory = 3, cold = 4 };

class Entry {
 public:
  constexpr Entry() noexcept = default;
  constexpr explicit Entry(uint64_t word) noexcept : word_(word) {}

  static constexpr unsigned kKindShift = 61;
  static constexpr unsigned kAgeShift = 59;
  static constexpr unsigned kOrderShift = 57;
  static constexpr unsigned kCodecShift = 54;
  static constexpr unsigned kLengthShift = 37;
  static constexpr uint64_t kLocationMask = (1ull << kLengthShift) - 1;
  static constexpr uint64_t kLengthMask = (1ull << (kCodecShift - kLengthShift)) - 1;
  static constexpr uint64_t kAgeMask = 3ull << kAgeShift;
  static constexpr unsigned kSameBits = 56;

  // Whether a page of this repeated word can be an entry of its own.
  static constexpr bool holds_word(uint64_t word) noexcept {
    const auto low = static_cast<int64_t>(word << (64 - kSameBits)) >> (64 - kSameBits);
    return static_cast<uint64_t>(low) == word || (word >> 32) == (word & 0xffff'ffffu);
  }
  // Only for holds_word(word).
  static constexpr Entry same_filled(uint64_t word) noexcept {
    const auto low = static_cast<int64_t>(word << (64 - kSameBits)) >> (64 - kSameBits);
    if (static_cast<uint64_t>(low) == word) {
      return Entry{kind_bits(EntryKind::same_word) | (word & ((1ull << kSameBits) - 1))};
    }
    return Entry{kind_bits(EntryKind::same_half) | (word & 0xffff'ffffu)};
  }
  // location in 8-byte steps; length of the object's payload in bytes, below 2^17; codec below 8.
  static constexpr Entry memory(uint64_t location, uint32_t length, uint32_t codec,
                                uint32_t order) noexcept {
    return Entry{kind_bits(EntryKind::memory) | (static_cast<uint64_t>(order / 2) << kOrderShift) |
                 (static_cast<uint64_t>(codec) << kCodecShift) |
                 (static_cast<uint64_t>(length) << kLengthShift) | location};
  }

  constexpr uint64_t word() const noexcept { return word_; }
  constexpr EntryKind kind() const noexcept { return static_cast<EntryKind>(word_ >> kKindShift); }
  constexpr bool is_empty() const noexcept { return kind() == EntryKind::empty; }
  constexpr bool is_memory() const noexcept { return kind() == EntryKind::memory; }
  constexpr bool is_same_filled() const noexcept {
    return kind() == EntryKind::same_word || kind() == EntryKind::same_half;
  }
  // Of a same-filled entry: the 64-bit word that the page repeats.
  constexpr uint64_t same_value() const noexcept {
    if (kind() == EntryKind::same_half) return (word_ << 32) | (word_ & 0xffff'ffffu);
    return static_cast<uint64_t>(static_cast<int64_t>(word_ << (64 - kSameBits)) >>
                                 (64 - kSameBits));
  }
  // Of a memory entry.
  constexpr uint64_t location() const noexcept { return word_ & kLocationMask; }
  constexpr uint32_t length() const noexcept {
    return static_cast<uint32_t>((word_ >> kLengthShift) & kLengthMask);
  }
  constexpr uint32_t codec() const noexcept {
    return static_cast<uint32_t>(word_ >> kCodecShift) & 7u;
  }
  // Orders 0, 2, 4 are kept as 0, 1, 2.
  constexpr uint32_t order() const noexcept {
    return (static_cast<uint32_t>(word_ >> kOrderShift) & 3u) * 2;
  }

  // The same content, whatever its age.
  constexpr bool same_content(Entry other) const noexcept {
    const uint64_t differing = word_ ^ other.word_;
    return (is_memory() ? differing & ~kAgeMask : differing) == 0;
  }

  friend constexpr bool operator==(Entry, Entry) noexcept = default;

 private:
  static constexpr uint64_t kind_bits(EntryKind kind) noexcept {
    return static_cast<uint64_t>(kind) << kKindShift;
  }

  uint64_t word_ = 0;
};

static_assert(sizeof(Entry) == 8);

}  // namespace tuck::engine

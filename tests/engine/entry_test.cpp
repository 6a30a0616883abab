// The 8-byte word: every field at its bounds, and same-filled words of every kind there and back.
#include "engine/entry.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/seed.h"

namespace tuck::engine {
namespace {

static_assert(Entry{}.is_empty());
static_assert(Entry{}.word() == 0, "an untouched leaf is empty");
static_assert(Entry::same_filled(0).same_value() == 0);
static_assert(!Entry::same_filled(0).is_empty(), "a stored zero page is not an empty slot");
static_assert(Entry::memory(0, 1, 0, 0).is_memory());

constexpr uint64_t kTop56 = (1ull << 55) - 1;        // the largest positive 56-bit word
constexpr uint64_t kBottom56 = ~((1ull << 55) - 1);  // the smallest negative one

TEST(Entry, SameFilledWordsComeBack) {
  for (const uint64_t word : std::initializer_list<uint64_t>{
           0, 1, 0xff, kTop56, kBottom56, ~0ull, ~1ull, kTop56 - 1, kBottom56 + 1,
           0x5a5a'5a5a'5a5a'5a5au, 0x8000'0000'8000'0000u, 0x7fff'ffff'7fff'ffffu,
           0xffff'ffff'0000'0000u, 0x0000'0000'ffff'ffffu, 0x00ff'ff00'00ff'ff00u,
           0x0080'0000'0080'0000u, 0xff80'0000'ff80'0000u, 0x0100'0000'0100'0000u}) {
    if (!Entry::holds_word(word)) continue;
    const Entry entry = Entry::same_filled(word);
    EXPECT_TRUE(entry.is_same_filled()) << std::hex << word;
    EXPECT_FALSE(entry.is_memory());
    EXPECT_FALSE(entry.is_empty());
    EXPECT_EQ(entry.same_value(), word) << std::hex << word;
  }
}

TEST(Entry, HoldsExactlyTheWordsItCanGiveBack) {
  EXPECT_TRUE(Entry::holds_word(0));
  EXPECT_TRUE(Entry::holds_word(~0ull));
  EXPECT_TRUE(Entry::holds_word(kTop56));
  EXPECT_TRUE(Entry::holds_word(kBottom56));
  EXPECT_FALSE(Entry::holds_word(kTop56 + 1));
  EXPECT_FALSE(Entry::holds_word(kBottom56 - 1));
  EXPECT_TRUE(Entry::holds_word(0x8000'0000'8000'0000u));
  EXPECT_FALSE(Entry::holds_word(0x8000'0000'0000'0000u));
  EXPECT_FALSE(Entry::holds_word(0x8000'0000'8000'0001u));
  test::Random random(test::seed());
  uint32_t held = 0;
  for (int i = 0; i < 200000; ++i) {
    uint64_t word = random.next();
    switch (random.below(4)) {
      case 0:
        word = word >> 32 << 32 | word >> 32;
        break;
      case 1:
        word = static_cast<uint64_t>(static_cast<int64_t>(word) >> random.below(40));
        break;
      case 2:
        word >>= random.below(40);
        break;
      default:
        break;
    }
    const bool sign_extended = word <= kTop56 || word >= kBottom56;
    const bool doubled = (word >> 32) == (word & 0xffff'ffffu);
    ASSERT_EQ(Entry::holds_word(word), sign_extended || doubled) << std::hex << word;
    if (!Entry::holds_word(word)) continue;
    ++held;
    const Entry entry = Entry::same_filled(word);
    ASSERT_EQ(entry.same_value(), word);
    ASSERT_TRUE(entry.is_same_filled());
    // One page content, one entry.
    ASSERT_EQ(Entry::same_filled(entry.same_value()), entry);
  }
  EXPECT_GT(held, 20000u);
}

TEST(Entry, MemoryFieldsKeepToTheirBits) {
  constexpr uint64_t kLastLocation = Entry::kLocationMask;
  constexpr auto kLastLength = static_cast<uint32_t>(Entry::kLengthMask);
  EXPECT_EQ(kLastLocation * 8 + 8, 1ull << 40) << "1 TiB of pool";
  EXPECT_GT(kLastLength, 65536u) << "a raw 64 KiB unit must fit";
  for (const uint64_t location : {uint64_t{0}, uint64_t{1}, kLastLocation / 3, kLastLocation}) {
    for (const uint32_t length : {0u, 1u, 4096u, 65536u, kLastLength}) {
      for (const uint32_t codec : {0u, 1u, 5u, 7u}) {
        for (const uint32_t order : {0u, 2u, 4u}) {
          const Entry entry = Entry::memory(location, length, codec, order);
          EXPECT_TRUE(entry.is_memory());
          EXPECT_FALSE(entry.is_same_filled());
          EXPECT_EQ(entry.location(), location);
          EXPECT_EQ(entry.length(), length);
          EXPECT_EQ(entry.codec(), codec);
          EXPECT_EQ(entry.order(), order);
          EXPECT_EQ(Entry{entry.word()}, entry);
        }
      }
    }
  }
}

TEST(Entry, AgeIsNoContent) {
  const Entry entry = Entry::memory(1234, 567, 2, 2);
  for (uint64_t age = 0; age < 4; ++age) {
    const Entry aged{(entry.word() & ~Entry::kAgeMask) | (age << Entry::kAgeShift)};
    EXPECT_TRUE(entry.same_content(aged));
    EXPECT_TRUE(aged.same_content(entry));
    EXPECT_EQ(aged.location(), entry.location());
    EXPECT_EQ(aged.length(), entry.length());
    EXPECT_EQ(aged.order(), entry.order());
  }
}

TEST(Entry, AnyOtherBitIsContent) {
  const std::array<Entry, 4> entries = {Entry{}, Entry::same_filled(0x1234'5678u),
                                        Entry::same_filled(0x5a00'0001'5a00'0001u),
                                        Entry::memory(77, 100, 1, 0)};
  for (const Entry entry : entries) {
    EXPECT_TRUE(entry.same_content(entry));
    for (unsigned bit = 0; bit < 64; ++bit) {
      const Entry other{entry.word() ^ (1ull << bit)};
      const bool age = entry.is_memory() && (Entry::kAgeMask >> bit & 1) != 0;
      EXPECT_EQ(entry.same_content(other), age)
          << "bit " << bit << " of " << std::hex << entry.word();
    }
  }
}

// A same-filled word may have bits where a memory entry has its age: they are content.
TEST(Entry, SameFilledWordsHaveNoAge) {
  for (const uint64_t word : {0ull, 1ull, ~0ull, 0x0055'5555'5555'5555ull}) {
    for (const uint64_t other : {2ull, 3ull, ~1ull}) {
      EXPECT_FALSE(Entry::same_filled(word).same_content(Entry::same_filled(other)));
    }
  }
}

}  // namespace
}  // namespace tuck::engine

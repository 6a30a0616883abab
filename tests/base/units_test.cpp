#include "base/units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tests/support/seed.h"

namespace tuck {
namespace {

constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();

void expect_size(std::string_view text, uint64_t bytes) {
  const auto size = parse_size(text);
  ASSERT_TRUE(size.ok()) << text << ": " << size.error().message;
  EXPECT_EQ(*size, bytes) << text;
}

TEST(ParseSize, ReadsWhatPeopleWrite) {
  expect_size("0", 0);
  expect_size("4096", 4096);
  expect_size("4096B", 4096);
  expect_size("64K", 64ull << 10);
  expect_size("64k", 64ull << 10);
  expect_size("64KB", 64ull << 10);
  expect_size("64KiB", 64ull << 10);
  expect_size("512M", 512ull << 20);
  expect_size("4G", 4ull << 30);
  expect_size("16T", 16ull << 40);
  expect_size("1P", 1ull << 50);
  expect_size("9223372036854775807", kLargest);
  expect_size("8191P", 8191ull << 50);
}

TEST(ParseSize, RefusesWhatIsNotOne) {
  for (const std::string_view text : {"",
                                      " ",
                                      "K",
                                      "B",
                                      "x",
                                      "-1",
                                      "+1",
                                      "1.5G",
                                      "1,5G",
                                      "4 G",
                                      " 4G",
                                      "4G ",
                                      "4GG",
                                      "4Gi",
                                      "4GiBx",
                                      "4Ki",
                                      "4iB",
                                      "0x10",
                                      "1e3",
                                      "4X",
                                      "4KBB",
                                      "9223372036854775808",
                                      "18446744073709551616",
                                      "8192P",
                                      "99999999999999999999999"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size.ok()) << "'" << text << "' was read as " << *size;
    EXPECT_EQ(size.error().code, Errc::invalid);
    // The text itself is in the sentence, so that it can be found on the command line.
    EXPECT_NE(size.error().message.find("'" + std::string(text) + "'"), std::string::npos);
  }
  // A byte behind the end of the text is not part of it.
  expect_size(std::string_view("64K", 2), 64);
  EXPECT_FALSE(parse_size(std::string_view("4\0K", 3)).ok());
}

TEST(FormatSize, GivesBackWhatWasRead) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(1), "1");
  EXPECT_EQ(format_size(4096), "4K");
  EXPECT_EQ(format_size(4097), "4097");
  EXPECT_EQ(format_size(1ull << 60), "1024P");
  test::Random random(test::seed());
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bytes = (random.next() >> random.between(1, 63)) << random.below(20) & kLargest;
    const auto again = parse_size(format_size(bytes));
    ASSERT_TRUE(again.ok()) << bytes;
    EXPECT_EQ(*again, bytes);
  }
}

TEST(FormatSize, RoundsForPeople) {
  EXPECT_EQ(format_size_rounded(0), "0 B");
  EXPECT_EQ(format_size_rounded(999), "999 B");
  EXPECT_EQ(format_size_rounded(1023), "1.00 KiB");
  EXPECT_EQ(format_size_rounded(1024), "1.00 KiB");
  EXPECT_EQ(format_size_rounded(1536), "1.50 KiB");
  EXPECT_EQ(format_size_rounded(10ull << 20), "10.0 MiB");
  EXPECT_EQ(format_size_rounded(123ull << 30), "123 GiB");
  EXPECT_EQ(format_size_rounded(2ull << 50), "2.00 PiB");
  EXPECT_FALSE(format_size_rounded(UINT64_MAX).empty());
}

// Three significant digits, whatever the number: never "10.00" or "1000".
TEST(FormatSize, KeepsToThreeDigits) {
  test::Random random(test::seed());
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bytes = random.next() >> random.between(8, 63);
    const std::string text = format_size_rounded(bytes);
    const auto digits =
        std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    EXPECT_LE(digits, 3) << bytes << " is written " << text;
    if (bytes >= 1000) {
      EXPECT_EQ(digits, 3) << bytes << " is written " << text;
    }
  }
}

}  // namespace
}  // namespace tuck

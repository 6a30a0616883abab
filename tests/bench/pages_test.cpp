// Which pages a run works on, and what is said of them.
#include "bench/frame/pages.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/bench/scratch.h"

namespace tuck::bench {
namespace {

using test::Scratch;

// Two pages of text that no codec is kept from, and one of zeroes.
std::string three_pages() {
  std::string text(3 * kPageSize, '\0');
  for (size_t i = 0; i < 2 * kPageSize; ++i)
    text[i] = static_cast<char>('a' + i % 23);
  return text;
}

TEST(BenchPages, GivenFilesAreKeptApartAndTogether) {
  const Scratch scratch;
  const std::string first = scratch.write("first.pages", three_pages());
  const std::string second = scratch.write("second.pages", std::string(kPageSize, 'x'));
  const auto pages = Pages::get({{first, second}, false});
  ASSERT_TRUE(pages) << pages.error().message;
  ASSERT_EQ(pages->corpora().size(), 2u);
  EXPECT_EQ(pages->corpora()[0].name, "first");
  EXPECT_EQ(pages->corpora()[0].pages(), 3u);
  EXPECT_EQ(pages->corpora()[1].name, "second");
  EXPECT_EQ(pages->corpora()[1].pages(), 1u);
  EXPECT_EQ(pages->all().pages(), 4u);
  EXPECT_EQ(std::memcmp(pages->all().page(0), three_pages().data(), 3 * kPageSize), 0);
  EXPECT_EQ(pages->all().page(3), pages->corpora()[1].page(0));
  EXPECT_EQ(std::to_integer<char>(*pages->all().page(3)), 'x');
}

TEST(BenchPages, OriginNamesTheFiles) {
  const Scratch scratch;
  const auto pages = Pages::get({{scratch.write("first.pages", three_pages())}, false});
  ASSERT_TRUE(pages) << pages.error().message;
  EXPECT_FALSE(pages->synthetic());
  EXPECT_EQ(pages->origin(), "first (0 MB)");
}

TEST(BenchPages, PagesToCompressLeavesOutSameFilledOnes) {
  const Scratch scratch;
  const auto pages = Pages::get({{scratch.write("first.pages", three_pages())}, false});
  ASSERT_TRUE(pages) << pages.error().message;
  const auto compressed = pages->pages_to_compress();
  ASSERT_EQ(compressed.size(), 2u);
  EXPECT_EQ(compressed[0], pages->all().page(0));
  EXPECT_EQ(compressed[1], pages->all().page(1));
}

TEST(BenchPages, AFileThatIsNotWholePagesIsRefusedByName) {
  const Scratch scratch;
  const std::string whole = scratch.write("whole.pages", three_pages());
  const std::string torn = scratch.write("torn.pages", std::string(kPageSize + 1, 'x'));
  const auto pages = Pages::get({{whole, torn}, false});
  ASSERT_FALSE(pages);
  EXPECT_NE(pages.error().message.find(torn), std::string::npos) << pages.error().message;
}

TEST(BenchPages, AMissingOrEmptyFileIsRefusedByName) {
  const Scratch scratch;
  for (const std::string& path : {scratch.file("none.pages"), scratch.write("empty.pages", "")}) {
    const auto pages = Pages::get({{path}, true});
    ASSERT_FALSE(pages) << path << ": files that were named come before generated pages";
    EXPECT_NE(pages.error().message.find(path), std::string::npos) << pages.error().message;
  }
}

TEST(BenchPages, GeneratedPagesAreCalledSynthetic) {
  const auto pages = Pages::get({{}, true});
  ASSERT_TRUE(pages) << pages.error().message;
  EXPECT_TRUE(pages->synthetic());
  EXPECT_TRUE(pages->origin().starts_with("SYNTHETIC")) << pages->origin();
  EXPECT_NE(pages->origin().find("asked for"), std::string::npos) << pages->origin();
  ASSERT_EQ(pages->corpora().size(), 1u);
  EXPECT_GT(pages->pages_to_compress().size(), pages->all().pages() / 2);
}

// A table keeps pointers into the pages while they are handed to it.
TEST(BenchPages, StayInPlaceWhenTheyAreMoved) {
  const Scratch scratch;
  auto pages = Pages::get({{scratch.write("first.pages", three_pages())}, false});
  ASSERT_TRUE(pages) << pages.error().message;
  const std::byte* const before = pages->all().page(0);
  const Pages moved = std::move(*pages);
  EXPECT_EQ(moved.all().page(0), before);
  EXPECT_EQ(std::memcmp(moved.all().page(0), three_pages().data(), 3 * kPageSize), 0);
}

}  // namespace
}  // namespace tuck::bench

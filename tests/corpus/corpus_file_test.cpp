// Corpus files: what was written is read back, and files that are no corpora are refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/corpus/corpus.h"

namespace tuck::corpus {
namespace {

class CorpusFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("tuck-corpus-file-test." + std::to_string(getpid())))
                .string();
  }
  void TearDown() override {
    std::filesystem::remove_all(path_);
    std::filesystem::remove(path_ + ".part");
  }
  std::string path_;
};

TEST_F(CorpusFile, ReadsBackWhatWasWritten) {
  // Not a multiple of the write buffer, and appended in uneven steps.
  constexpr size_t kPages = 700;
  std::vector<std::byte> pages(kPages * kPageSize);
  const SyntheticPages generator(7);
  for (size_t i = 0; i < kPages; ++i) {
    generator.fill(i, std::span<std::byte>(pages).subspan(i * kPageSize).first<kPageSize>());
  }
  auto out = PageFileWriter::create(path_);
  ASSERT_TRUE(out) << out.error().message;
  size_t done = 0;
  for (size_t step = 1; done < kPages; ++step) {
    const size_t count = std::min(step * 3, kPages - done);
    ASSERT_FALSE(out->append(
        std::span<const std::byte>(pages).subspan(done * kPageSize, count * kPageSize)));
    done += count;
  }
  EXPECT_FALSE(std::filesystem::exists(path_)) << "there before it is whole";
  ASSERT_FALSE(out->finish());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".part"));

  auto read = PageFile::open(path_);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->bytes().size(), pages.size());
  EXPECT_EQ(std::memcmp(read->bytes().data(), pages.data(), pages.size()), 0);
}

TEST_F(CorpusFile, LeavesNothingBehindWhenNotFinished) {
  {
    auto out = PageFileWriter::create(path_);
    ASSERT_TRUE(out);
    const std::vector<std::byte> page(kPageSize);
    ASSERT_FALSE(out->append(page));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".part"));
}

TEST_F(CorpusFile, RefusesWhatIsNotACorpus) {
  EXPECT_FALSE(PageFile::open(path_)) << "no such file";
  std::ofstream(path_).close();
  EXPECT_FALSE(PageFile::open(path_)) << "empty";
  std::ofstream(path_) << std::string(kPageSize + 1, 'x');
  EXPECT_FALSE(PageFile::open(path_)) << "not whole pages";
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(PageFile::open(path_)) << "a directory";
  EXPECT_FALSE(PageFileWriter::create(path_)) << "a directory";
  EXPECT_FALSE(PageFileWriter::create("/dev/null")) << "a device";
}

TEST_F(CorpusFile, RefusesToFinishWithoutPages) {
  auto out = PageFileWriter::create(path_);
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->finish().has_value());
}

TEST(Statistics, CountsEachSortOfPage) {
  std::vector<std::byte> pages(4 * kPageSize);
  std::memset(pages.data() + kPageSize, 0x5a, kPageSize);      // same-filled
  pages[2 * kPageSize + 100] = std::byte{1};                   // compressible
  for (size_t i = 0; i < kPageSize / sizeof(uint64_t); ++i) {  // incompressible
    const uint64_t word = (i + 1) * 0x9e3779b97f4a7c15u ^ ((i + 1) * 0xd6e8feb86659fd93u >> 31);
    std::memcpy(pages.data() + 3 * kPageSize + i * sizeof(word), &word, sizeof(word));
  }
  const Statistics statistics = measure(pages);
  EXPECT_EQ(statistics.pages, 4u);
  EXPECT_EQ(statistics.zero, 1u);
  EXPECT_EQ(statistics.same_filled, 2u);
  EXPECT_EQ(statistics.incompressible, 1u);
  EXPECT_EQ(statistics.compressed_pages(), 2u);
  EXPECT_EQ(statistics.lz4_4k_quantile(0.5), 256u);
  EXPECT_EQ(statistics.lz4_4k_quantile(1.0), 4096u);
  EXPECT_GT(statistics.lz4_4k_bytes, uint64_t{kPageSize});
  EXPECT_LT(statistics.lz4_4k_bytes, uint64_t{kPageSize + 256});
}

}  // namespace
}  // namespace tuck::corpus

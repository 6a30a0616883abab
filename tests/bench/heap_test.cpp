// The processes that have a heap: what they say is in it, that the kernel's count is the heap's,
// and what is said of a heap that cannot be had.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/frame/mapped_file.h"
#include "bench/peers/heap.h"
#include "bench/peers/scratch_folder.h"

namespace tuck::bench {
namespace {

constexpr uint32_t kPages = 512;
constexpr unsigned kCopies = 4;
constexpr uint64_t kObjects = uint64_t{kPages} * kCopies;

// A malloc's object for a page: sizes that differ, so that a wrong object shows in the sum.
uint32_t size_of(uint64_t object) {
  return 100 + static_cast<uint32_t>(object % kPages) * 7;
}

std::vector<char> page_of(uint32_t number) {
  std::vector<char> page(4096);
  for (size_t at = 0; at < page.size(); ++at)
    page[at] = static_cast<char>(at / 16 * (number + 3) + at % 5);
  return page;
}

class HeapTest : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);  // as in the bench
    auto made = ScratchFolder::create(kPages * (4096 + sizeof(uint32_t)));
    ASSERT_TRUE(made) << made.error().message;
    folder.emplace(std::move(*made));
    content = {folder->file("pages"), folder->file("sizes"), kCopies};
    std::ofstream pages(content.pages_file, std::ios::binary);
    std::ofstream sizes(content.sizes_file, std::ios::binary);
    for (uint32_t i = 0; i < kPages; ++i) {
      const auto page = page_of(i);
      pages.write(page.data(), static_cast<std::streamsize>(page.size()));
      const uint32_t size = size_of(i);
      sizes.write(reinterpret_cast<const char*>(&size), sizeof size);
    }
    ASSERT_TRUE(pages.flush() && sizes.flush());
  }

  std::optional<ScratchFolder> folder;
  HeapContent content;
};

uint64_t bytes_of(const Result<uint64_t, Error>& payload) {
  if (payload) return *payload;
  ADD_FAILURE() << payload.error().message;
  return 0;
}

uint64_t payload_of_all() {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < kObjects; ++i)
    bytes += size_of(i);
  return bytes;
}

uint64_t payload_left(uint64_t seed) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < kObjects; ++i)
    bytes += is_freed(seed, i) ? 0 : size_of(i);
  return bytes;
}

TEST_F(HeapTest, AMallocHasEveryObjectAndThenTheHalfOfTheSeed) {
  auto heap = HeapSubject::start({}, content);
  ASSERT_TRUE(heap) << heap.error().message;
  EXPECT_EQ(bytes_of(heap->fill()), payload_of_all());
  EXPECT_EQ(bytes_of(heap->free_half(3)), payload_left(3));
  EXPECT_LT(payload_left(3), payload_of_all() * 6 / 10);
  EXPECT_GT(payload_left(3), payload_of_all() * 4 / 10);
}

TEST_F(HeapTest, WhatTheKernelCountsIsTheObjectsAndNotTheFile) {
  auto heap = HeapSubject::start({}, content);
  ASSERT_TRUE(heap) << heap.error().message;
  EXPECT_LT(heap->resident_bytes(), 256u << 10);
  ASSERT_TRUE(heap->fill());
  EXPECT_GE(heap->resident_bytes(), payload_of_all());
  EXPECT_LE(heap->resident_bytes(), payload_of_all() * 12 / 10 + (256u << 10));
}

TEST_F(HeapTest, TheEngineHasThePagesAndThenTheHalfOfTheSeed) {
  auto heap = HeapSubject::start({"", true, "lz4"}, content);
  ASSERT_TRUE(heap) << heap.error().message;
  const auto full = heap->fill();
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_GT(*full, kObjects * 64);
  EXPECT_LT(*full, kObjects * 4096);
  EXPECT_GE(heap->resident_bytes(), *full);
  const auto left = heap->free_half(3);
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_LT(*left, *full * 6 / 10);
  EXPECT_GT(*left, *full * 4 / 10);
}

TEST_F(HeapTest, EveryPeerIsLoadedOrSaidToBeMissing) {
  for (const char* library : {"libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"}) {
    auto heap = HeapSubject::start({library, false, ""}, content);
    if (!heap) {
      EXPECT_EQ(heap.error().message, std::string(library) + " is not installed");
      continue;
    }
    EXPECT_EQ(bytes_of(heap->fill()), payload_of_all()) << library;
    EXPECT_GE(heap->resident_bytes(), payload_of_all()) << library;
    EXPECT_EQ(bytes_of(heap->free_half(5)), payload_left(5)) << library;
  }
}

TEST_F(HeapTest, ALibraryThatIsNotInstalledIsNamed) {
  const auto heap = HeapSubject::start({"libnosuchmalloc.so.9", false, ""}, content);
  ASSERT_FALSE(heap);
  EXPECT_EQ(heap.error().message, "libnosuchmalloc.so.9 is not installed");
}

TEST_F(HeapTest, AFileThatIsNotThereAndACodecThatIsNoneAreNamed) {
  const auto codec = HeapSubject::start({"", true, "no-such-codec"}, content);
  ASSERT_FALSE(codec);
  EXPECT_NE(codec.error().message.find("no-such-codec"), std::string::npos)
      << codec.error().message;
  content.sizes_file = folder->file("gone");
  const auto heap = HeapSubject::start({}, content);
  ASSERT_FALSE(heap);
  EXPECT_NE(heap.error().message.find("gone"), std::string::npos) << heap.error().message;
}

TEST_F(HeapTest, AProcessThatWasKilledIsAnErrorAndNoHang) {
  auto heap = HeapSubject::start({}, content);
  ASSERT_TRUE(heap) << heap.error().message;
  pid_t child = 0;
  if (!(std::ifstream("/proc/thread-self/children") >> child))
    GTEST_SKIP() << "this kernel does not list a thread's children";
  ASSERT_EQ(kill(child, SIGKILL), 0);
  const auto payload = heap->fill();
  ASSERT_FALSE(payload);
  EXPECT_EQ(payload.error().message, "the process with the heap ended or hung: without a word");
}

TEST(IsFreed, IsAHalfAndAnotherOneForEverySeed) {
  constexpr uint64_t kTries = 100'000;
  uint64_t first = 0;
  uint64_t both = 0;
  for (uint64_t i = 0; i < kTries; ++i) {
    first += is_freed(1, i);
    both += is_freed(1, i) && is_freed(2, i);
  }
  // Five standard deviations of a fair coin: 5 × √(kTries × p × (1 − p)).
  EXPECT_NEAR(static_cast<double>(first), kTries / 2.0, 791);
  EXPECT_NEAR(static_cast<double>(both), kTries / 4.0, 685);
}

TEST(MappedFile, HasTheFilesBytesWhereverItIsMovedTo) {
  auto folder = ScratchFolder::create(4096);
  ASSERT_TRUE(folder) << folder.error().message;
  const std::string path = folder->file("some");
  std::ofstream(path) << "some bytes";
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped) << mapped.error().message;
  const std::byte* const where = mapped->bytes().data();
  const MappedFile moved = std::move(*mapped);
  ASSERT_EQ(moved.bytes().size(), 10u);
  EXPECT_EQ(moved.bytes().data(), where);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "some bytes", 10), 0);
}

TEST(MappedFile, OneThatIsEmptyOrNotThereIsNamed) {
  auto folder = ScratchFolder::create(4096);
  ASSERT_TRUE(folder) << folder.error().message;
  const std::string path = folder->file("empty");
  for (int i = 0; i < 2; ++i) {
    const auto mapped = MappedFile::open(path);
    ASSERT_FALSE(mapped);
    EXPECT_NE(mapped.error().message.find(path), std::string::npos) << mapped.error().message;
    std::ofstream{path};
  }
}

}  // namespace
}  // namespace tuck::bench

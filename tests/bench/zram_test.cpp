// zram as a peer: what its devices say, that they keep what is written to them, and the program
// whose memory is swapped to them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bench/peers/swap_subject.h"
#include "bench/peers/zram_device.h"
#include "bench/peers/zram_swap.h"

namespace tuck::bench {
namespace {

constexpr uint64_t kMiB = 1u << 20;

struct alignas(kPageSize) Page {
  std::byte bytes[kPageSize];
};

std::unique_ptr<Page[]> pages_with_text(size_t count) {
  auto pages = std::make_unique<Page[]>(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t at = 0; at < kPageSize; ++at)
      pages[i].bytes[at] = static_cast<std::byte>(at / 16 + 7 * i);
  }
  return pages;
}

std::span<std::byte> bytes_of(Page* pages, size_t count) {
  return {pages->bytes, count * kPageSize};
}

// What went wrong; empty: nothing.
std::string said(const Status& status) {
  return status ? status->message : "";
}

// Where this machine has no zram for us, the test says why and ends.
class ZramDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = ZramDevice::create("lz4", 4 * kMiB);
    if (!made) GTEST_SKIP() << made.error().message;
    device.emplace(std::move(*made));
  }
  std::optional<ZramDevice> device;
};

TEST(ZramMemory, IsTheFirstThreeNumbersOfMmStat) {
  const auto memory = parse_mm_stat(
      " 8192     2048    12288        0    12288        1        0        0        0\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->orig_data_size, 8192u);
  EXPECT_EQ(memory->compr_data_size, 2048u);
  EXPECT_EQ(memory->mem_used_total, 12288u);
}

TEST(ZramMemory, IsNothingWhereNumbersAreMissing) {
  EXPECT_FALSE(parse_mm_stat(""));
  EXPECT_FALSE(parse_mm_stat("8192 2048\n"));
  EXPECT_FALSE(parse_mm_stat("8192 many 12288\n"));
}

TEST(ZramDeviceErrors, AnUnknownAlgorithmIsSaidByName) {
  const auto made = ZramDevice::create("no-such-codec", kMiB);
  ASSERT_FALSE(made);
  if (geteuid() != 0 || !std::filesystem::exists("/sys/class/zram-control"))
    GTEST_SKIP() << made.error().message;
  EXPECT_NE(made.error().message.find("no-such-codec"), std::string::npos) << made.error().message;
}

TEST_F(ZramDeviceTest, GivesBackWhatWasWritten) {
  const auto written = pages_with_text(4);
  const auto got = std::make_unique<Page[]>(4);
  ASSERT_EQ(said(device->write(0, bytes_of(written.get(), 1))), "");
  ASSERT_EQ(said(device->write(kMiB, bytes_of(written.get() + 1, 3))), "");
  ASSERT_EQ(said(device->read(0, bytes_of(got.get(), 1))), "");
  ASSERT_EQ(said(device->read(kMiB, bytes_of(got.get() + 1, 3))), "");
  EXPECT_EQ(std::memcmp(written.get(), got.get(), 4 * kPageSize), 0);
}

TEST_F(ZramDeviceTest, CountsWhatItHolds) {
  const auto pages = pages_with_text(4);
  ASSERT_EQ(said(device->write(0, bytes_of(pages.get(), 4))), "");
  const auto full = device->memory();
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->orig_data_size, 4 * kPageSize);
  EXPECT_GT(full->compr_data_size, 0u);
  EXPECT_LT(full->compr_data_size, full->orig_data_size);
  EXPECT_GE(full->mem_used_total, full->compr_data_size);
  ASSERT_EQ(said(device->discard(0, 4 * kPageSize)), "");
  ASSERT_EQ(said(device->compact()), "");
  const auto empty = device->memory();
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_EQ(empty->orig_data_size, 0u);
}

TEST_F(ZramDeviceTest, ReadsZeroesAfterADiscard) {
  const auto page = pages_with_text(1);
  ASSERT_EQ(said(device->write(0, bytes_of(page.get(), 1))), "");
  ASSERT_EQ(said(device->discard(0, kPageSize)), "");
  ASSERT_EQ(said(device->read(0, bytes_of(page.get(), 1))), "");
  EXPECT_TRUE(std::ranges::all_of(page[0].bytes, [](std::byte b) { return b == std::byte{}; }));
}

TEST_F(ZramDeviceTest, SaysWhatIsWrongBeyondItsEnd) {
  const auto page = pages_with_text(1);
  const Status wrong = device->write(4 * kMiB, bytes_of(page.get(), 1));
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->message.find(device->path()), std::string::npos) << wrong->message;
}

// Another test may have a device of the same number at once: the folder's inode says whose it is.
TEST_F(ZramDeviceTest, IsGoneWithItsObject) {
  const std::string folder = "/sys/block/" + device->path().substr(std::strlen("/dev/")) + "/";
  struct stat before {};
  ASSERT_EQ(stat(folder.c_str(), &before), 0);
  {
    const ZramDevice moved = std::move(*device);
    struct stat now {};
    ASSERT_EQ(stat(folder.c_str(), &now), 0);
    EXPECT_EQ(now.st_ino, before.st_ino);
  }
  struct stat after {};
  EXPECT_TRUE(stat(folder.c_str(), &after) != 0 || after.st_ino != before.st_ino);
}

TEST(SwapAnswers, AreReadAsTheyAreWritten) {
  const SwapAnswer answer{1, 4096, 8192, 2u << 20, 5, 18446744073709551615u};
  const auto read = parse_swap_answer(to_line(answer));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, answer);
}

TEST(SwapAnswers, OfAFailureAreItsMessage) {
  const auto read = parse_swap_answer(to_line(Error{Errc::no_space, "there is no swap"}));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "there is no swap");
}

TEST(SwapAnswers, ThatAreNoneAreErrorsThatShowThem) {
  const std::string whole = to_line(SwapAnswer{});
  for (const std::string& line :
       {std::string(), std::string("done"), whole.substr(0, whole.size() - 1), whole + " more=1",
        std::string("done ns=-1 bytes=0 swap_bytes=0 huge_bytes=0 folios=0 fallbacks=0"),
        std::string("error while loading shared libraries")}) {
    const auto read = parse_swap_answer(line);
    ASSERT_FALSE(read) << line;
    EXPECT_NE(read.error().message.find(line), std::string::npos) << read.error().message;
  }
}

TEST(KernelSettings, TheChoiceIsTheOneInBrackets) {
  EXPECT_EQ(chosen("always inherit madvise [never]\n"), "never");
  EXPECT_EQ(chosen("[always] madvise never\n"), "always");
  EXPECT_EQ(chosen("0\n"), std::nullopt);
  EXPECT_EQ(chosen("] ["), std::nullopt);
  EXPECT_EQ(chosen(""), std::nullopt);
}

TEST(SwapPriority, IsAboveAllThatAreThere) {
  const std::string head = "Filename\tType\tSize\tUsed\tPriority\n";
  EXPECT_EQ(priority_above(head), 0);
  EXPECT_EQ(priority_above(head + "/dev/vda2   partition\t1\t0\t\t-2\n"), 0);
  EXPECT_EQ(
      priority_above(head + "/swap\\040file file\t1\t0\t\t5\n/dev/zram0 partition\t1\t0\t\t100\n"),
      101);
  EXPECT_EQ(priority_above(head + "/dev/zram0 partition\t1\t0\t\t32767\n"), 32767);
}

// A subject, without swap: what it does then is the same on every machine.
class SwapSubjectTest : public testing::Test {
 protected:
  void SetUp() override {
    // As in a bench's worker: to write to a subject that has ended is an error, no death.
    signal(SIGPIPE, SIG_IGN);
    auto started = SwapSubject::start(4);
    ASSERT_TRUE(started) << started.error().message;
    subject.emplace(std::move(*started));
  }
  std::optional<SwapSubject> subject;
};

TEST_F(SwapSubjectTest, TakesPagesAndGivesThemBack) {
  const auto pages = pages_with_text(300);  // more than a pipe holds
  for (int i = 0; i < 2; ++i) {
    const auto filled = subject->fill(bytes_of(pages.get(), 300));
    ASSERT_TRUE(filled) << filled.error().message;
    EXPECT_EQ(filled->bytes, 300 * kPageSize);
    EXPECT_GT(filled->ns, 0u);
    const auto touched = subject->fault_at_random();
    ASSERT_TRUE(touched) << touched.error().message;
    const auto freed = subject->unmap();
    ASSERT_TRUE(freed) << freed.error().message;
    EXPECT_EQ(freed->swap_bytes, 0u);
  }
}

TEST_F(SwapSubjectTest, WantsToBeFilledFirst) {
  for (const auto& answer : {subject->pageout(), subject->fault_in_order(), subject->unmap()}) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message, "it has to be filled first");
  }
}

TEST_F(SwapSubjectTest, TakesWholePagesOnly) {
  const auto page = pages_with_text(1);
  const auto filled = subject->fill(bytes_of(page.get(), 1).first(100));
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().message, "no whole pages");
  EXPECT_FALSE(subject->unmap()) << "it ends then: the pages behind are no commands";
}

}  // namespace
}  // namespace tuck::bench

// What is read from /proc: the parsers on fixed text, and the real thing on memory of known state.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <sstream>

#include "frontends/cli/process_figures.h"
#include "frontends/cli/watched_memory.h"

namespace tuck::cli {
namespace {

TEST(ProcessFigures, ReadsItsFieldsAlone) {
  std::istringstream status(
      "Name:\tVmRSS: 1 kB\n"
      "VmHWM:\t    2048 kB\n"
      "VmRSS:\t    1024 kB\n"
      "VmLck:\t       4 kB\n"
      "VmSwap:\t       0 kB\n"
      "Threads:\t7\n"
      "SigQ:\t0/31234\n");
  ProcessFigures figures;
  figures.swapped_bytes = 1;
  parse_proc_status(status, figures);
  EXPECT_EQ(figures.resident_bytes, 1024u * 1024);
  EXPECT_EQ(figures.resident_peak_bytes, 2048u * 1024);
  EXPECT_EQ(figures.locked_bytes, 4096u);
  EXPECT_EQ(figures.swapped_bytes, 0u);
  EXPECT_EQ(figures.threads, 7u);
}

TEST(ProcessFigures, OfThisProcess) {
  const ProcessFigures figures = read_process_figures();
  EXPECT_GT(figures.resident_bytes, 0u);
  EXPECT_GE(figures.resident_peak_bytes, figures.resident_bytes);
  EXPECT_GE(figures.threads, 1u);
  EXPECT_GT(figures.minor_faults, 0u);
}

constexpr const char* kSmaps =
    "1000-3000 rw-p 00000000 00:00 0 \n"
    "Size:                  8 kB\n"
    "Rss:                   4 kB\n"
    "Swap:                  8 kB\n"
    "SwapPss:              16 kB\n"
    "3000-4000 r-xp 00000000 00:00 0   /bin/Rss: 7 kB\n"
    "Rss:                  64 kB\n"
    "Swap:                128 kB\n"
    "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 [heap]\n"
    "Rss:                 256 kB\n"
    "Swap:                  0 kB\n";

TEST(ParseSmaps, CountsTheMappingsThatOverlap) {
  std::istringstream smaps(kSmaps);
  const KernelView view = parse_smaps(smaps, {{0x2000, 0x3000}, {0x7f0000000000, 0x7f0000001000}});
  EXPECT_EQ(view.resident_bytes, 260u * 1024);
  EXPECT_EQ(view.swapped_bytes, 8u * 1024);
}

TEST(ParseSmaps, CountsAMappingOfSeveralRangesOnce) {
  std::istringstream smaps(kSmaps);
  const KernelView view = parse_smaps(smaps, {{0x1000, 0x2000}, {0x2000, 0x3000}});
  EXPECT_EQ(view.resident_bytes, 4u * 1024);
}

TEST(ParseSmaps, CountsNothingOfOthers) {
  std::istringstream smaps(kSmaps);
  EXPECT_EQ(parse_smaps(smaps, {{0x4000, 0x5000}}).resident_bytes, 0u);
  std::istringstream again(kSmaps);
  EXPECT_EQ(parse_smaps(again, {}).resident_bytes, 0u);
}

TEST(WatchedMemory, SeesWhatIsPopulatedAndReleased) {
  constexpr size_t kBytes = 64u << 20;
  constexpr size_t kPopulated = 12u << 20;
  WatchedMemory memory;
  const auto at = memory.reserve(kBytes, "a test");
  ASSERT_TRUE(at.ok()) << at.error().message;
  EXPECT_EQ(memory.kernel_view().resident_bytes, 0u);
  ASSERT_EQ(memory.populate(*at, kPopulated), Errc::ok);
  EXPECT_EQ(memory.kernel_view().resident_bytes, kPopulated);
  memory.release(*at, kPopulated / 2);
  EXPECT_EQ(memory.kernel_view().resident_bytes, kPopulated / 2);
  memory.unreserve(*at, kBytes);
  EXPECT_EQ(memory.kernel_view().resident_bytes, 0u);
}

TEST(WatchedMemory, CountsNoNeighbours) {
  constexpr size_t kBytes = 1u << 20;
  AnonymousMemorySource plain;
  WatchedMemory watched;
  // Mappings of one kind that are made one after another lie side by side.
  const auto below = plain.reserve(kBytes, "a neighbour");
  const auto at = watched.reserve(kBytes, "a test");
  const auto above = plain.reserve(kBytes, "a neighbour");
  ASSERT_TRUE(below.ok() && at.ok() && above.ok());
  ASSERT_EQ(plain.populate(*below, kBytes), Errc::ok);
  ASSERT_EQ(watched.populate(*at, kBytes), Errc::ok);
  ASSERT_EQ(plain.populate(*above, kBytes), Errc::ok);
  EXPECT_EQ(watched.kernel_view().resident_bytes, kBytes);
  plain.unreserve(*below, kBytes);
  watched.unreserve(*at, kBytes);
  plain.unreserve(*above, kBytes);
}

}  // namespace
}  // namespace tuck::cli

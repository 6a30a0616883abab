// What may be taken of the kernel's free memory: the parser on fixed text, and the pool's source
// with a file in the place of /proc/zoneinfo.
#include "frontends/cli/free_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/sysinfo.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "base/base.h"
#include "frontends/cli/watched_memory.h"

namespace tuck::cli {
namespace {

// As Linux 6.1 prints a zone, the lines that matter among some that look like them.
std::string zone(const char* name, uint64_t free, uint64_t min, uint64_t managed, uint64_t kept) {
  return fmt::format(
      "Node 0, zone {:>8}\n"
      "  per-node stats\n"
      "      nr_free_pages 7\n"
      "  pages free     {}\n"
      "        boost    0\n"
      "        min      {}\n"
      "        low      {}\n"
      "        spanned  4095\n"
      "        managed  {}\n"
      "        protection: (0, 0, {}, {})\n"
      "      nr_free_pages {}\n"
      "  pagesets\n"
      "    cpu: 0\n"
      "              count:    378\n"
      "              high_min: 999999\n",
      name, free, min, min * 2, managed, kept, kept, free);
}

TEST(Zoneinfo, RoomIsCountedFromSevenEighthsOfTheMark) {
  const ZoneFigures figures = parse_zoneinfo(zone("Normal", 1000, 800, 40000, 0));
  EXPECT_EQ(figures.floors, 700u);
  EXPECT_EQ(figures.most_room, 300u);
  EXPECT_EQ(parse_zoneinfo(zone("Normal", 700, 800, 40000, 0)).most_room, 0u);
  EXPECT_EQ(parse_zoneinfo(zone("Normal", 699, 800, 40000, 0)).most_room, 0u);
}

// What a zone keeps for those that can use no other is not ours either; one that keeps more than it
// has is left alone, and is in nobody's way.
TEST(Zoneinfo, WhatAZoneKeepsIsNotRoom) {
  EXPECT_EQ(parse_zoneinfo(zone("DMA32", 1000, 800, 40000, 250)).most_room, 50u);
  const ZoneFigures figures =
      parse_zoneinfo(zone("DMA", 3840, 8, 3840, 60000) + zone("Normal", 900, 800, 40000, 0));
  EXPECT_EQ(figures.most_room, 200u);
  EXPECT_EQ(figures.floors, 3840u + 700u);
}

TEST(Zoneinfo, TheBestZoneCounts) {
  const std::string zones = zone("DMA", 100, 80, 4000, 0) + zone("DMA32", 5000, 800, 40000, 0) +
                            zone("Normal", 900, 800, 40000, 0);
  EXPECT_EQ(parse_zoneinfo(zones).most_room, 4300u);
}

TEST(Zoneinfo, TextThatIsNone) {
  for (const char* text :
       {"", "\n", "Node", "pages free", "pages free \n min\n protection: (", "x"}) {
    const ZoneFigures figures = parse_zoneinfo(text);
    EXPECT_EQ(figures.most_room, 0u) << text;
    EXPECT_EQ(figures.floors, 0u) << text;
  }
}

TEST(FreeMemory, OfThisMachine) {
  auto memory = FreeMemory::open();
  ASSERT_TRUE(memory) << memory.error().message;
  struct sysinfo info {};
  ASSERT_EQ(sysinfo(&info), 0);
  EXPECT_TRUE(memory->has(0));
  EXPECT_FALSE(memory->has((uint64_t{info.totalram} + kPageSize) * info.mem_unit));
  EXPECT_FALSE(memory->has(UINT64_MAX));
}

TEST(FreeMemory, AFileThatIsNotThereOrSomethingElse) {
  const auto missing = FreeMemory::open("/proc/no-such-file");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/proc/no-such-file: No such file"), std::string::npos);
  const auto other = FreeMemory::open("/proc/self/status");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("watermarks"), std::string::npos);
}

// The marks are higher than this machine has memory, so that the file is asked each time.
TEST(FreeMemory, ThePoolTakesOnlyWhatIsFree) {
  const std::string path = testing::TempDir() + "tuck-zoneinfo";
  const auto write = [&path](uint64_t free) {
    constexpr uint64_t kMark = 1ull << 32;
    std::ofstream(path) << zone("Normal", kMark - kMark / 8 + free, kMark, kMark * 2, 0);
  };
  // A refusal holds for a while.
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  write(16);
  auto free = FreeMemory::open(path.c_str());
  ASSERT_TRUE(free) << free.error().message;

  WatchedMemory memory;
  constexpr size_t kBytes = 64 * kPageSize;
  const auto at = memory.reserve(kBytes, "a test");
  ASSERT_TRUE(at);
  constexpr size_t kPart = 16 * kPageSize;
  EXPECT_EQ(memory.populate(*at, kPart), Errc::ok) << "nothing is asked for before";
  memory.take_only_what_is_free(std::move(*free));
  EXPECT_EQ(memory.populate(*at + kPart, kPart + kPageSize), Errc::no_space);
  EXPECT_EQ(memory.kernel_view().resident_bytes, kPart);
  pause();
  EXPECT_EQ(memory.populate(*at + kPart, kPart), Errc::ok);
  write(0);
  EXPECT_EQ(memory.populate(*at + 2 * kPart, kPageSize), Errc::no_space);
  EXPECT_EQ(memory.kernel_view().resident_bytes, 2 * kPart);
  write(48);
  pause();
  EXPECT_EQ(memory.populate(*at + 2 * kPart, 2 * kPart), Errc::ok);
  EXPECT_EQ(memory.kernel_view().resident_bytes, 4 * kPart);
  memory.unreserve(*at, kBytes);
}

}  // namespace
}  // namespace tuck::cli

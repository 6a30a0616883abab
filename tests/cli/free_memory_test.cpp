// What may be taken of the kernel's free memory: the parser on fixed text, and the pool's source
// with a file in the place of /proc/zoneinfo.
#include "frontends/cli/free_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
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

ZoneFigures figures_of(const std::string& text) {
  const auto figures = parse_zoneinfo(text);
  EXPECT_TRUE(figures.has_value()) << text;
  return figures.value_or(ZoneFigures{});
}

TEST(Zoneinfo, RoomIsCountedFromSevenEighthsOfTheMark) {
  const ZoneFigures figures = figures_of(zone("Normal", 1000, 800, 40000, 0));
  EXPECT_EQ(figures.floors, 700u);
  EXPECT_EQ(figures.most_room, 300u);
  EXPECT_EQ(figures.largest_eighth, 100u);
  EXPECT_EQ(figures_of(zone("Normal", 700, 800, 40000, 0)).most_room, 0u);
  EXPECT_EQ(figures_of(zone("Normal", 699, 800, 40000, 0)).most_room, 0u);
}

// What a zone keeps for those that can use no other is not ours either; one that keeps more than it
// has is left alone, and is in nobody's way.
TEST(Zoneinfo, WhatAZoneKeepsIsNotRoom) {
  EXPECT_EQ(figures_of(zone("DMA32", 1000, 800, 40000, 250)).most_room, 50u);
  const ZoneFigures figures =
      figures_of(zone("DMA", 3840, 1600, 3840, 60000) + zone("Normal", 900, 800, 40000, 0));
  EXPECT_EQ(figures.most_room, 200u);
  EXPECT_EQ(figures.largest_eighth, 100u);
  EXPECT_EQ(figures.floors, 3840u + 700u);
}

TEST(Zoneinfo, TheBestZoneCounts) {
  const std::string zones = zone("DMA", 100, 80, 4000, 0) + zone("DMA32", 5000, 1600, 40000, 0) +
                            zone("Normal", 900, 800, 40000, 0);
  EXPECT_EQ(figures_of(zones).most_room, 3600u);
  EXPECT_EQ(figures_of(zones).largest_eighth, 200u);
}

TEST(Zoneinfo, TextThatIsNone) {
  for (const char* text :
       {"", "\n", "Node", "pages free", "pages free \n min\n protection: (", "x"}) {
    EXPECT_FALSE(parse_zoneinfo(text).has_value()) << text;
  }
}

// Wherever the text ends, a zone that is cut off does not count as one without marks.
TEST(Zoneinfo, TextThatIsCutOff) {
  const std::string whole = zone("DMA32", 1000, 800, 40000, 0);
  const std::string both = whole + zone("Normal", 50000, 800, 40000, 0);
  for (size_t size = 0; size <= both.size(); ++size) {
    const auto figures = parse_zoneinfo(both.substr(0, size));
    if (!figures) {
      ASSERT_LT(size, whole.size());
    } else if (figures->most_room > 300) {
      EXPECT_EQ(figures->most_room, 49300u) << size;
      EXPECT_EQ(figures->floors, 1400u) << size;
    }
  }
}

// A file in the place of /proc/zoneinfo. Its marks are higher than this machine has memory, so that
// it is asked each time.
class ZoneinfoFile {
 public:
  static constexpr uint64_t kMark = 1ull << 32;

  void write(uint64_t room) const {
    write_text(zone("Normal", kMark - kMark / 8 + room, kMark, kMark * 2, 0));
  }
  void write_text(const std::string& text) const { std::ofstream(path_) << text; }
  const char* path() const { return path_.c_str(); }
  ~ZoneinfoFile() { std::remove(path_.c_str()); }

 private:
  const std::string path_ = testing::TempDir() + "tuck-zoneinfo-" + std::to_string(getpid());
};

// A refusal holds for a while.
void wait_out_refusal() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST(FreeMemory, OfThisMachine) {
  auto memory = FreeMemory::open();
  ASSERT_TRUE(memory) << memory.error().message;
  struct sysinfo info {};
  ASSERT_EQ(sysinfo(&info), 0);
  EXPECT_GT(memory->largest_eighth_bytes(), 0u);
  EXPECT_LT(memory->largest_eighth_bytes(), uint64_t{info.totalram} * info.mem_unit / 8);
  EXPECT_TRUE(memory->has(kPageSize)) << "this machine has no memory";
  EXPECT_FALSE(memory->has((uint64_t{info.totalram} + kPageSize) * info.mem_unit));
  wait_out_refusal();
  EXPECT_TRUE(memory->has(kPageSize));
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

TEST(FreeMemory, AFileThatCannotBeReadAnyMoreIsARefusalUntilItCan) {
  const ZoneinfoFile file;
  file.write(16);
  auto memory = FreeMemory::open(file.path());
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_TRUE(memory->has(16 * kPageSize));
  for (const char* text : {"", "Node 0, zone Normal\n  pages free 99999999999\n"}) {
    file.write_text(text);
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(memory->has(kPageSize));
      wait_out_refusal();
    }
  }
  file.write(16);
  EXPECT_TRUE(memory->has(16 * kPageSize));
}

// With plenty free the file is asked again only after a while, but it is.
TEST(FreeMemory, MarksThatRiseAreSeen) {
  const ZoneinfoFile file;
  file.write_text(zone("Normal", 1000, 8, 40000, 0));
  auto memory = FreeMemory::open(file.path());
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_TRUE(memory->has(kPageSize));
  file.write(0);
  bool seen = false;
  for (int i = 0; i < 5000 && !seen; ++i) {
    wait_out_refusal();
    seen = !memory->has(kPageSize);
  }
  EXPECT_TRUE(seen);
}

TEST(FreeMemory, ThePoolTakesOnlyWhatIsFree) {
  const ZoneinfoFile file;
  file.write(16);
  auto free = FreeMemory::open(file.path());
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
  wait_out_refusal();
  EXPECT_EQ(memory.populate(*at + kPart, kPart), Errc::ok);
  file.write(0);
  EXPECT_EQ(memory.populate(*at + 2 * kPart, kPageSize), Errc::no_space);
  EXPECT_EQ(memory.kernel_view().resident_bytes, 2 * kPart);
  file.write(48);
  wait_out_refusal();
  EXPECT_EQ(memory.populate(*at + 2 * kPart, 2 * kPart), Errc::ok);
  EXPECT_EQ(memory.kernel_view().resident_bytes, 4 * kPart);
  memory.unreserve(*at, kBytes);
}

}  // namespace
}  // namespace tuck::cli

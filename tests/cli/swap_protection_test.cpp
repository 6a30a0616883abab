// What is read from /proc about protections and swap, on fixed text and on this process. The
// protections themselves are tested on the real program (swap_protection_test.py, tests/guest).
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "frontends/cli/memory_map.h"
#include "frontends/cli/swap_protection.h"
#include "frontends/cli/swap_users.h"

namespace tuck::cli {
namespace {

TEST(TaskStat, FlagsAreTheNinthFieldWhateverTheName) {
  std::string name;
  uint64_t flags = 0;
  ASSERT_TRUE(parse_task_stat("7 (a) b (c)) S 1 2 3 4 -1 1572864 9 9", name, flags));
  EXPECT_EQ(name, "a) b (c)");
  EXPECT_EQ(flags, 0x180000u);
  EXPECT_FALSE(parse_task_stat("", name, flags));
  EXPECT_FALSE(parse_task_stat("7 (a", name, flags));
  EXPECT_FALSE(parse_task_stat("7 (a) S 1 2", name, flags));
  EXPECT_FALSE(parse_task_stat(")(", name, flags));
}

TEST(TaskStat, SeesEveryThread) {
  const ThreadFlags alone = read_thread_flags();
  ASSERT_GE(alone.threads, 1u);
  std::jthread other([&] {
    const ThreadFlags both = read_thread_flags();
    EXPECT_EQ(both.threads, alone.threads + 1);
    EXPECT_LE(both.unprotected, both.threads);
  });
}

TEST(NbdSwap, AreTheDevicesOfTheNbdClient) {
  std::istringstream swaps(
      "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
      "/dev/sda2                               partition\t1\t0\t-2\n"
      "/dev/nbd0                               partition\t1\t0\t100\n"
      "/swap/dev/nbd1                          file\t1\t0\t-3\n"
      "/dev/nbd12p1\tpartition\t1\t0\t-4\n");
  EXPECT_EQ(nbd_swap_devices(swaps), (std::vector<std::string>{"/dev/nbd0", "/dev/nbd12p1"}));
  std::istringstream nothing("");
  EXPECT_TRUE(nbd_swap_devices(nothing).empty());
}

TEST(MemoryMap, ReadsNamesPermissionsAndFlags) {
  std::istringstream smaps(
      "1000-3000 rw-p 00000000 00:00 0 \n"
      "Rss:                   4 kB\n"
      "VmFlags: rd wr mr lo nr \n"
      "3000-4000 ---p 00001000 fe:00 77   /lib/a b.so\n"
      "Swap:                 12 kB\n"
      "VmFlags: mr\n"
      "4000-5000 r-xp 00000000 00:00 0   [vdso]\n");
  std::vector<Mapping> all;
  for_each_mapping(smaps, [&all](const Mapping& one) { all.push_back(one); });
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].bytes(), 0x2000u);
  EXPECT_TRUE(all[0].writable());
  EXPECT_TRUE(all[0].has_flag("lo"));
  EXPECT_TRUE(all[0].has_flag("nr"));
  EXPECT_FALSE(all[0].has_flag("io"));
  EXPECT_EQ(all[0].resident_bytes, 4096u);
  EXPECT_EQ(all[1].name, "/lib/a b.so");
  EXPECT_FALSE(all[1].may_be_touched());
  EXPECT_TRUE(all[1].has_flag("mr"));
  EXPECT_FALSE(all[1].has_flag("lo"));
  EXPECT_EQ(all[1].swapped_bytes, 12u * 1024);
  EXPECT_EQ(all[2].name, "[vdso]");
  EXPECT_TRUE(all[2].may_be_touched());
}

TEST(MemoryMap, FindsThisFunction) {
  const auto here = reinterpret_cast<uintptr_t>(&for_each_mapping);
  bool found = false;
  for (const Mapping& one : own_mappings()) {
    if (one.range.overlaps({here, here + 1})) found = one.permissions == "r-xp";
  }
  EXPECT_TRUE(found);
}

TEST(SwapProtection, OffClaimsNothing) {
  SwapProtection protection(ProtectionMode::off);
  protection.claim();
  EXPECT_EQ(protection.complete({}), std::nullopt);
  EXPECT_TRUE(protection.list().empty());
}

}  // namespace
}  // namespace tuck::cli

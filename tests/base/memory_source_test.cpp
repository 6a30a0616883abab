// Anonymous memory, and the test source that all other tests lean on.
#include "base/memory_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/types.h"
#include "tests/support/resident.h"
#include "tests/support/test_source.h"

namespace tuck {
namespace {

using tuck::test::TestSource;

constexpr size_t kBytes = 4u << 20;

bool all_zero(const std::byte* begin, size_t length) {
  return std::all_of(begin, begin + length, [](std::byte b) { return b == std::byte{0}; });
}

TEST(AnonymousMemorySource, PopulatesAndReleases) {
  AnonymousMemorySource source;
  const auto at = source.reserve(kBytes, "a test");
  ASSERT_TRUE(at.ok()) << at.error().message;
  EXPECT_EQ(test::resident_bytes(*at, kBytes), 0u) << "reserved only";
  ASSERT_EQ(source.populate(*at + 16 * kPageSize, 100 * kPageSize), Errc::ok);
  EXPECT_EQ(test::resident_bytes(*at, kBytes), 100 * kPageSize);
  EXPECT_TRUE(all_zero(*at + 16 * kPageSize, 100 * kPageSize));
  std::fill_n(*at + 16 * kPageSize, 100 * kPageSize, std::byte{7});
  source.release(*at + 20 * kPageSize, 50 * kPageSize);
  EXPECT_EQ(test::resident_bytes(*at, kBytes), 50 * kPageSize);
  EXPECT_EQ((*at)[19 * kPageSize], std::byte{7});
  EXPECT_EQ((*at)[70 * kPageSize], std::byte{7});
  ASSERT_EQ(source.populate(*at + 20 * kPageSize, 50 * kPageSize), Errc::ok);
  EXPECT_TRUE(all_zero(*at + 20 * kPageSize, 50 * kPageSize));
  source.unreserve(*at, kBytes);
}

TEST(AnonymousMemorySource, SaysWhyItCannotReserve) {
  AnonymousMemorySource source;
  const auto at = source.reserve(1ull << 60, "the moon");
  ASSERT_FALSE(at.ok());
  EXPECT_EQ(at.error().code, Errc::no_space);
  EXPECT_NE(at.error().message.find("the moon"), std::string::npos);
}

TEST(ReservedArray, ReadsAsZeroesAndIsPopulatedInPieces) {
  TestSource source({"numbers"});
  {
    auto made = ReservedArray<uint64_t>::create(source, 10000, "numbers");
    ASSERT_TRUE(made.ok());
    const ReservedArray<uint64_t> array = std::move(*made);
    EXPECT_EQ(array.size_bytes() % ReservedArray<uint64_t>::kGrain, 0u);
    EXPECT_GE(array.size_bytes(), 10000 * sizeof(uint64_t));
    EXPECT_EQ(array[9999], 0u);
    ASSERT_EQ(array.populate_bytes(4096, 3 * 4096), Errc::ok);
    EXPECT_EQ(source.populated_bytes("numbers"), 8192u);
    array[600] = 5;
    EXPECT_EQ(array[600], 5u);
    source.fail_populate(1, false);
    EXPECT_EQ(array.populate_bytes(0, 4096), Errc::no_space);
    EXPECT_EQ(array.populate_bytes(0, 4096), Errc::ok);
  }
  EXPECT_TRUE(source.purposes().empty()) << "given back once, by the last owner";
}

TEST(TestSource, HoldsUntilLet) {
  TestSource source;
  const auto at = source.reserve(kBytes, "a test");
  ASSERT_TRUE(at.ok());
  source.hold_populate();
  std::jthread waiting([&] { EXPECT_EQ(source.populate(*at, kPageSize), Errc::ok); });
  while (source.held() == 0)
    std::this_thread::yield();
  EXPECT_EQ(source.populated_bytes(), 0u);
  source.let_populate();
  waiting.join();
  EXPECT_EQ(source.populated_bytes(), kPageSize);
  source.unreserve(*at, kBytes);
}

TEST(TestSourceDeathTest, EndsTheTestOnMisuse) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  TestSource source;
  const auto at = source.reserve(kBytes, "a test");
  ASSERT_TRUE(at.ok());
  ASSERT_EQ(source.populate(*at, 2 * kPageSize), Errc::ok);
  EXPECT_DEATH(static_cast<void>(source.populate(*at + kPageSize, kPageSize)), "populated already");
  EXPECT_DEATH(source.release(*at + kPageSize, 2 * kPageSize), "not populated");
  EXPECT_DEATH(source.unreserve(*at, kPageSize), "no such reservation");
  EXPECT_DEATH(static_cast<void>(source.populate(*at + kBytes, kPageSize)), "inside");
  // A frame that nobody populated cannot even be read.
  EXPECT_DEATH(static_cast<void>(*const_cast<volatile std::byte*>(*at + 2 * kPageSize)), "");
  source.unreserve(*at, kBytes);
}

}  // namespace
}  // namespace tuck

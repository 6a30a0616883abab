// The allocator by itself: random histories against the oracle, limits, the reserve, a source that
// fails at any point.
#include "allocator/allocator.h"

#include <gtest/gtest.h>

#include <vector>

#include "allocator/size_class.h"
#include "tests/allocator/model.h"
#include "tests/support/scale.h"

namespace tuck::allocator::test {
namespace {

using tuck::test::scaled;
using tuck::test::seed;

constexpr uint64_t kMiB = 1ull << 20;

AllocatorOptions options_for(TestSource& source) {
  AllocatorOptions options;
  options.memory = &source;
  options.address_space_bytes = 1ull << 30;
  return options;
}

TEST(Allocator, AnObjectOfEverySize) {
  TestSource source;
  const auto allocator = make_allocator(options_for(source));
  Model model(*allocator, seed());
  constexpr uint32_t kLargest = kObjectBytesMax - static_cast<uint32_t>(sizeof(ObjectHeader));
  const uint32_t step = tuck::test::kSanitized ? 7 : 1;
  for (uint32_t bytes = 1; bytes <= kLargest; bytes += bytes < 4200 ? step : 61) {
    ASSERT_EQ(model.allocate(bytes), Errc::ok) << bytes;
    ASSERT_GE(allocator->object_bytes(bytes), bytes + sizeof(ObjectHeader));
  }
  ASSERT_EQ(model.allocate(kLargest), Errc::ok);
  model.check_all();
  expect_ledger_is_true(*allocator, source);
  model.free_all();
  model.check_all();
  EXPECT_TRUE(allocator->ledger().classes.empty()) << "zspages are given up when they are empty";
  expect_ledger_is_true(*allocator, source);
}

TEST(Allocator, RandomHistory) {
  TestSource source;
  AllocatorOptions options = options_for(source);
  options.reserve_bytes = 2 * kMiB;
  const auto allocator = make_allocator(options);
  Model model(*allocator, seed());
  Random& random = model.random();
  // The share of frees goes up and down, so that the pool is full and nearly empty in turn.
  for (uint32_t round = 0; round < scaled(60); ++round) {
    const uint64_t weight = random.between(1, 9);
    for (uint32_t step = 0; step < 400; ++step) {
      if (random.below(10) < weight) {
        ASSERT_EQ(model.allocate(random_payload(random)), Errc::ok);
      } else {
        model.free_some(random.one_in(30) ? random.between(100, 3000) : random.between(0, 4));
      }
      if (random.one_in(50)) allocator->maintain();
    }
    model.check_all();
    ASSERT_FALSE(HasFailure());
  }
  expect_ledger_is_true(*allocator, source);
}

TEST(Allocator, FreedMemoryGoesBack) {
  TestSource source;
  AllocatorOptions options = options_for(source);
  options.reserve_bytes = kMiB;
  const auto allocator = make_allocator(options);
  Model model(*allocator, seed());
  for (int round = 0; round < 3; ++round) {
    while (model.payload_bytes() < 20 * kMiB) {
      ASSERT_EQ(model.allocate(random_payload(model.random())), Errc::ok);
    }
    expect_ledger_is_true(*allocator, source);
    model.free_all();
    while (allocator->maintain()) {
    }
    // What is left is the reserve, give or take the block that it is kept in.
    EXPECT_LE(allocator->ledger().pool_bytes(), kMiB + kMiB / 4 + 64 * kFrameSize);
    EXPECT_EQ(allocator->ledger().pool_bytes(), allocator->ledger().reserve_bytes);
    expect_ledger_is_true(*allocator, source);
    allocator->verify();
  }
}

// The pool grows and shrinks over and over. Address space and descriptors are used again: metadata
// must not grow with history.
class AllocatorCycles : public ::testing::TestWithParam<bool> {};

TEST_P(AllocatorCycles, DoNotLeakMetadata) {
  TestSource source;
  AllocatorOptions options = options_for(source);
  options.address_space_bytes = 256 * kMiB;
  options.reserve_bytes = 4 * kMiB;
  if (GetParam()) options.empty_reserve = EmptyReserve::wait;
  const auto allocator = make_allocator(options);
  Model model(*allocator, seed());
  uint64_t after_first = 0;
  for (uint32_t cycle = 0; cycle < scaled(40) + 2; ++cycle) {
    while (model.payload_bytes() < 12 * kMiB) {
      const Errc code = model.allocate(static_cast<uint32_t>(model.random().between(1000, 4096)));
      if (code == Errc::pending) {
        ASSERT_TRUE(allocator->maintain()) << "pending, and nothing brings any room";
        continue;
      }
      ASSERT_EQ(code, Errc::ok) << "cycle " << cycle;
    }
    model.free_all();
    while (allocator->maintain()) {
    }
    allocator->verify();
    if (cycle == 0) after_first = allocator->ledger().metadata_bytes;
  }
  EXPECT_LE(allocator->ledger().metadata_bytes, 2 * after_first);
}

INSTANTIATE_TEST_SUITE_P(BothWays, AllocatorCycles, ::testing::Bool());

TEST(Allocator, KeepsToItsLimit) {
  for (const uint64_t limit : {uint64_t{kFrameSize}, 5 * uint64_t{kFrameSize}, kMiB,
                               kMiB + 3 * kFrameSize, 7 * kMiB + 100}) {
    TestSource source;
    AllocatorOptions options = options_for(source);
    options.limit_bytes = limit;
    options.reserve_bytes = limit / 8;
    const auto allocator = make_allocator(options);
    Model model(*allocator, seed() + limit);
    Random& random = model.random();
    for (int round = 0; round < 6; ++round) {
      Errc code = Errc::ok;
      while (code == Errc::ok) {
        code = model.allocate(random_payload(random));
        ASSERT_LE(source.populated_bytes_at(allocator->pool_range().data()), limit);
      }
      ASSERT_EQ(code, Errc::no_space);
      model.check_all();
      model.free_some(model.count() / 2);
      allocator->maintain();
      ASSERT_LE(allocator->ledger().pool_bytes(), limit);
      model.check_all();
    }
    // With all freed there is room for each class whose zspage the limit allows.
    model.free_all();
    while (allocator->maintain()) {
    }
    const SizeClasses classes;
    for (const uint32_t bytes : {1u, 504u, 2000u, 3000u, 4000u, 4096u, 60000u}) {
      const SizeClass& size_class = classes[classes.index_of(bytes + 8)];
      Errc code = model.allocate(bytes);
      if (code == Errc::no_space) {
        // The room may have been ready in pieces: the background puts that right.
        allocator->maintain();
        code = model.allocate(bytes);
      }
      const bool fits = size_class.zspage_bytes() <= limit;
      EXPECT_EQ(code, fits ? Errc::ok : Errc::no_space) << bytes << " of " << limit;
      model.free_all();
    }
    model.check_all();
  }
}

// A limit that leaves less than a whole block: under EmptyReserve::wait the last frames must be
// usable, and "pending" must never be said when nothing is to come.
TEST(Allocator, PendingMeansThatRoomIsComing) {
  for (const uint64_t frames : {3u, 63u, 64u, 65u, 100u, 130u, 500u}) {
    TestSource source;
    AllocatorOptions options = options_for(source);
    options.limit_bytes = frames * kFrameSize;
    options.reserve_bytes = options.limit_bytes / 4;
    options.empty_reserve = EmptyReserve::wait;
    const auto allocator = make_allocator(options);
    Model model(*allocator, seed() + frames);
    for (int round = 0; round < 3; ++round) {
      for (;;) {
        const Errc code = model.allocate(random_payload(model.random()));
        if (code == Errc::no_space) break;
        if (code == Errc::ok) continue;
        ASSERT_EQ(code, Errc::pending);
        ASSERT_TRUE(allocator->maintain() || allocator->reserve_is_low())
            << "pending for good at a limit of " << frames << " frames";
      }
      model.check_all();
      model.free_some(model.count() / 2);
    }
    EXPECT_LE(source.populated_bytes_at(allocator->pool_range().data()), options.limit_bytes);
  }
}

// The ready frames are many but in pieces; a long zspage waits for a run.
TEST(Allocator, PendingAmongPiecesEnds) {
  TestSource source;
  AllocatorOptions options = options_for(source);
  options.reserve_bytes = kMiB;
  options.empty_reserve = EmptyReserve::wait;
  const auto allocator = make_allocator(options);
  allocator->maintain();
  Model model(*allocator, seed());
  // Objects that take a frame each, then every second one freed: single ready frames only.
  const SizeClasses classes;
  const SizeClass& frame_class = classes[classes.index_of(kFrameSize)];
  ASSERT_EQ(frame_class.frames, 1);
  ASSERT_EQ(frame_class.objects, 1);
  const uint32_t payload = kFrameSize - static_cast<uint32_t>(sizeof(ObjectHeader));
  for (;;) {
    if (model.allocate(payload) == Errc::ok) continue;
    if (model.count() >= 1500) break;  // and no frame is ready now
    ASSERT_TRUE(allocator->maintain());
  }
  ASSERT_EQ(allocator->ledger().reserve_bytes, 0u);
  // As many pieces as the reserve is to have frames: it looks full.
  uint64_t freed = 0;
  model.free_unless([&](const Object& object) {
    return object.location / 512 % 2 == 0 || ++freed > options.reserve_bytes / kFrameSize + 10;
  });
  model.check_all();
  const uint32_t large = kObjectBytesMax - static_cast<uint32_t>(sizeof(ObjectHeader));
  Errc code = Errc::pending;
  for (int i = 0; i < 1000 && code == Errc::pending; ++i) {
    code = model.allocate(large);
    if (code == Errc::pending) allocator->maintain();
  }
  EXPECT_EQ(code, Errc::ok);
  model.check_all();
}

TEST(Allocator, WaitsForTheReserveOnly) {
  TestSource source;
  AllocatorOptions options = options_for(source);
  options.reserve_bytes = kMiB;
  options.empty_reserve = EmptyReserve::wait;
  const auto allocator = make_allocator(options);
  Model model(*allocator, seed());
  // Nothing was populated yet, and allocate() must not do it.
  const uint64_t before = source.populated_bytes_at(allocator->pool_range().data());
  Errc code = Errc::ok;
  while (code == Errc::ok)
    code = model.allocate(2000);
  EXPECT_EQ(code, Errc::pending);
  EXPECT_EQ(source.populated_bytes_at(allocator->pool_range().data()), before);
  EXPECT_TRUE(allocator->reserve_is_low());
  EXPECT_TRUE(allocator->maintain());
  EXPECT_EQ(model.allocate(2000), Errc::ok);
  EXPECT_FALSE(allocator->reserve_is_low());
  model.check_all();
}

// However long the pool grows, allocate() leaves it to maintain() to populate anything, descriptors
// and maps included.
TEST(Allocator, NeverPopulatesWhileItWaits) {
  TestSource source;
  AllocatorOptions options = options_for(source);
  options.reserve_bytes = 2 * kMiB;
  options.empty_reserve = EmptyReserve::wait;
  const auto allocator = make_allocator(options);
  Model model(*allocator, seed());
  uint32_t waits = 0;
  while (model.payload_bytes() < 30 * kMiB) {
    const uint64_t calls = source.populate_calls();
    // Many zspages of one frame: descriptors are used up fastest.
    const Errc code = model.allocate(model.random().one_in(4) ? 4088 : 500);
    ASSERT_EQ(source.populate_calls(), calls);
    if (code == Errc::ok) continue;
    ASSERT_EQ(code, Errc::pending);
    ++waits;
    allocator->maintain();
  }
  EXPECT_LT(waits, 40u) << "a round of maintenance brings as much as the reserve says";
  model.check_all();
}

// Fails the n-th populate, for every n that the scenario reaches: the call that needed it says
// no_space, nothing else changes, and when the source works again so does the allocator.
void run_failing(uint64_t nth, bool all_that_follow, uint64_t* failures) {
  TestSource source;
  AllocatorOptions options = options_for(source);
  options.reserve_bytes = kMiB / 2;
  const auto allocator = make_allocator(options);
  Model model(*allocator, seed() + nth);
  Random& random = model.random();
  source.fail_populate(nth, all_that_follow);
  for (int step = 0; step < 400; ++step) {
    if (random.one_in(4)) {
      model.free_some(random.below(8));
    } else {
      const uint64_t failures_before = source.failures();
      const Errc code = model.allocate(random_payload(random));
      ASSERT_TRUE(code == Errc::ok || code == Errc::no_space);
      if (code == Errc::no_space) {
        ASSERT_GT(source.failures(), failures_before) << "no_space without a reason";
        allocator->verify();
        if (random.one_in(8)) {
          model.check_all();
          expect_ledger_is_true(*allocator, source);
        }
      }
    }
    if (random.one_in(40)) allocator->maintain();
  }
  model.check_all();
  source.fail_nothing();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(model.allocate(random_payload(random)), Errc::ok);
  }
  allocator->maintain();
  model.check_all();
  expect_ledger_is_true(*allocator, source);
  *failures = source.failures();
}

TEST(Allocator, SurvivesEachFailureOnce) {
  for (uint64_t nth = 1;; ++nth) {
    uint64_t failures = 0;
    run_failing(nth, false, &failures);
    ASSERT_FALSE(HasFatalFailure()) << "at populate " << nth;
    if (failures == 0) {
      EXPECT_GT(nth, 5u) << "the scenario populates too little to mean anything";
      return;
    }
  }
}

TEST(Allocator, SurvivesEachFailureForGood) {
  for (uint64_t nth = 1; nth <= scaled(40); ++nth) {
    uint64_t failures = 0;
    run_failing(nth, true, &failures);
    ASSERT_FALSE(HasFatalFailure()) << "from populate " << nth;
  }
}

TEST(Allocator, SaysSoWhenThereIsNoAddressSpace) {
  for (uint64_t nth = 1;; ++nth) {
    TestSource source;
    source.fail_reserve(nth);
    auto allocator = Allocator::create(options_for(source));
    if (allocator) {
      EXPECT_GT(nth, 1u);
      return;
    }
    EXPECT_EQ(allocator.error().code, Errc::no_space);
    EXPECT_FALSE(allocator.error().message.empty());
    EXPECT_TRUE(source.purposes().empty()) << "what had been reserved was not given back";
  }
}

TEST(Allocator, EndsAtItsAddressSpace) {
  TestSource source;
  AllocatorOptions options = options_for(source);
  options.address_space_bytes = 32 * kMiB;
  const auto allocator = make_allocator(options);
  Model model(*allocator, seed());
  // The first refusal comes early, to a class with long zspages; in the end nothing fits.
  for (uint32_t refused = 0; refused < 2000;) {
    const Errc code = model.allocate(random_payload(model.random()));
    if (code == Errc::ok) continue;
    ASSERT_EQ(code, Errc::no_space);
    ++refused;
  }
  EXPECT_GT(model.payload_bytes(), 24 * kMiB);
  model.check_all();
  expect_ledger_is_true(*allocator, source);
  model.free_all();
  EXPECT_EQ(model.allocate(60000), Errc::ok);
  model.check_all();
}

TEST(AllocatorDeathTest, FreeingTwiceAborts) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  TestSource source;
  const auto allocator = make_allocator(options_for(source));
  const auto kept = allocator->allocate(100, Owner{});
  const auto freed = allocator->allocate(100, Owner{});
  ASSERT_TRUE(kept.ok() && freed.ok());
  const std::vector<Object> once = {{*freed, 100}};
  EXPECT_DEATH(
      {
        allocator->free(once);
        allocator->free(once);
      },
      "check failed");
}

}  // namespace
}  // namespace tuck::allocator::test

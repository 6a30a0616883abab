// Threads that allocate, pass objects on and free each other's, all of the same few classes.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/allocator/model.h"
#include "tests/support/scale.h"
#include "tests/support/threads.h"

namespace tuck::allocator::test {
namespace {

using tuck::test::run_threads;
using tuck::test::scaled;
using tuck::test::seed;

struct Tagged {
  Object object;
  uint64_t tag = 0;
};

// Objects on their way from one thread to another.
class Basket {
 public:
  void put(std::vector<Tagged>& objects) {
    const std::lock_guard lock(mutex_);
    objects_.insert(objects_.end(), objects.begin(), objects.end());
    objects.clear();
  }
  std::vector<Tagged> take(size_t count) {
    const std::lock_guard lock(mutex_);
    const size_t from = objects_.size() - std::min(count, objects_.size());
    std::vector<Tagged> taken(objects_.begin() + static_cast<std::ptrdiff_t>(from), objects_.end());
    objects_.resize(from);
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<Tagged> objects_;
};

void free_checked(Allocator& allocator, const std::vector<Tagged>& objects) {
  std::vector<Object> batch;
  for (const Tagged& tagged : objects) {
    has_tag(allocator, tagged.object, tagged.tag);
    batch.push_back(tagged.object);
  }
  allocator.free(batch);
}

// Returns how many allocations were refused.
uint32_t work(Allocator& allocator, Basket& basket, uint64_t thread, uint32_t steps) {
  Random random(seed() + thread);
  std::vector<Tagged> mine;
  uint32_t refused = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    if (random.below(5) < 3) {
      // Few sizes, so that threads meet in one class, large ones among them.
      const auto bytes = static_cast<uint32_t>(random.one_in(10) ? random.between(5000, 60000)
                                                                 : 600 * random.between(1, 6));
      const auto location = allocator.allocate(bytes, Owner{AreaId{1}, SlotIndex{step}});
      if (!location) {
        EXPECT_EQ(location.error(), Errc::no_space);
        ++refused;
        free_checked(allocator, basket.take(50));
        continue;
      }
      const uint64_t tag = thread << 32 | step;
      mine.push_back(Tagged{Object{*location, bytes}, tag});
      write_tag(allocator, mine.back().object, tag);
    } else if (random.one_in(2)) {
      basket.put(mine);
    } else {
      free_checked(allocator, basket.take(random.below(20)));
    }
  }
  basket.put(mine);
  return refused;
}

void run(uint64_t limit_bytes) {
  TestSource source;
  AllocatorOptions options;
  options.memory = &source;
  options.address_space_bytes = 1ull << 30;
  options.limit_bytes = limit_bytes;
  options.reserve_bytes = 1u << 20;
  const auto allocator = make_allocator(options);
  Basket basket;
  std::atomic<uint32_t> working{4};
  std::atomic<uint32_t> refused{0};
  run_threads(5, [&](uint32_t thread) {
    if (thread == 4) {
      // The background's part, and a reader of figures.
      while (working.load() != 0) {
        allocator->maintain();
        static_cast<void>(allocator->ledger());
        static_cast<void>(allocator->reserve_is_low());
        std::this_thread::yield();
      }
      return;
    }
    refused += work(*allocator, basket, thread, scaled(20000));
    --working;
  });
  allocator->verify();
  expect_ledger_is_true(*allocator, source);
  free_checked(*allocator, basket.take(SIZE_MAX));
  allocator->verify();
  EXPECT_TRUE(allocator->ledger().classes.empty()) << "zspages without objects were kept";
  expect_ledger_is_true(*allocator, source);
  if (limit_bytes == 0) {
    EXPECT_EQ(refused.load(), 0u);
  }
}

TEST(AllocatorConcurrent, ManyThreadsFewClasses) {
  run(0);
}

TEST(AllocatorConcurrent, AtTheLimit) {
  run(3u << 20);
}

// All threads find their class without a zspage and wait for frames at the same moment: each makes
// a zspage, and one would do.
TEST(AllocatorConcurrent, FirstZspageOfAClass) {
  constexpr uint32_t kThreads = 3;
  for (uint32_t round = 0; round < scaled(200); ++round) {
    TestSource source;
    AllocatorOptions options;
    options.memory = &source;
    options.address_space_bytes = 1ull << 30;
    const auto allocator = make_allocator(options);
    // The metadata is there before and no frame is ready, so that it is frames that all wait for.
    std::vector<Tagged> objects(kThreads);
    do {
      const auto location = allocator->allocate(4088, Owner{});
      ASSERT_TRUE(location.ok());
      objects.push_back(Tagged{Object{*location, 4088}, 0});
      write_tag(*allocator, objects.back().object, 0);
    } while (allocator->ledger().reserve_bytes != 0);
    source.hold_populate();
    run_threads(kThreads + 1, [&](uint32_t thread) {
      if (thread == kThreads) {
        while (source.held() < kThreads)
          std::this_thread::yield();
        source.let_populate();
        return;
      }
      const uint32_t bytes = 400 + round % 40 * 90;
      const auto location = allocator->allocate(bytes, Owner{AreaId{1}, SlotIndex{thread}});
      ASSERT_TRUE(location.ok());
      objects[thread] = Tagged{Object{*location, bytes}, round * 4 + thread};
      write_tag(*allocator, objects[thread].object, objects[thread].tag);
    });
    allocator->verify();
    free_checked(*allocator, objects);
    allocator->verify();
    ASSERT_TRUE(allocator->ledger().classes.empty()) << "a zspage without objects was kept";
  }
}

// The system takes its time over whatever the background populates, frames, descriptors or maps:
// nobody else waits for it.
TEST(AllocatorConcurrent, AStalledSourceStopsNobody) {
  TestSource source;
  AllocatorOptions options;
  options.memory = &source;
  options.address_space_bytes = 1ull << 30;
  options.reserve_bytes = 1u << 18;
  options.empty_reserve = EmptyReserve::wait;
  const auto allocator = make_allocator(options);
  std::vector<Object> objects;
  for (uint32_t round = 0; round < 60; ++round) {
    source.hold_populate();
    std::jthread background([&] { allocator->maintain(); });
    for (;;) {
      const auto location = allocator->allocate(4088, Owner{AreaId{1}, SlotIndex{round}});
      if (!location) {
        EXPECT_EQ(location.error(), Errc::pending);
        break;
      }
      objects.push_back(Object{*location, 4088});
    }
    if (objects.size() > 10) {
      allocator->free(std::span(objects).last(1));
      objects.pop_back();
    }
    static_cast<void>(allocator->ledger());
    source.let_populate();
  }
  EXPECT_GT(objects.size(), 1000u);
  allocator->free(objects);
  allocator->verify();
  expect_ledger_is_true(*allocator, source);
}

}  // namespace
}  // namespace tuck::allocator::test

// Epochs: what a reader may see is not reused while it is inside.
#include "base/epoch.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/threads.h"

namespace tuck {
namespace {

TEST(Epochs, NobodyInsideHoldsNothingBack) {
  Epochs epochs;
  EXPECT_EQ(epochs.oldest(), UINT64_MAX);
  const uint64_t stamp = epochs.advance();
  EXPECT_GE(epochs.oldest(), stamp);
  EXPECT_GT(epochs.advance(), stamp);
}

TEST(Epochs, WhoWasInsideHoldsBackWhatCameAfter) {
  Epochs epochs;
  const uint32_t line = epochs.enter();
  const uint64_t stamp = epochs.advance();
  EXPECT_LT(epochs.oldest(), stamp);
  // One that enters later does not make it better or worse.
  const uint32_t later = epochs.enter();
  EXPECT_NE(line, later);
  EXPECT_LT(epochs.oldest(), stamp);
  epochs.leave(line);
  EXPECT_GE(epochs.oldest(), stamp);
  const uint64_t next = epochs.advance();
  EXPECT_LT(epochs.oldest(), next);
  epochs.leave(later);
  EXPECT_EQ(epochs.oldest(), UINT64_MAX);
}

TEST(Epochs, SteppingOutLetsGo) {
  Epochs epochs;
  const uint32_t line = epochs.enter();
  const uint64_t stamp = epochs.advance();
  epochs.step_out(line);
  EXPECT_GE(epochs.oldest(), stamp);
  epochs.step_in(line);
  EXPECT_GE(epochs.oldest(), stamp) << "it entered after the advance";
  const uint64_t next = epochs.advance();
  EXPECT_LT(epochs.oldest(), next);
  epochs.leave(line);
}

TEST(Epochs, IdleLinesAreTakenAndHoldNothingBack) {
  Epochs epochs;
  const uint32_t line = epochs.enter();
  EXPECT_FALSE(epochs.try_claim_idle(line));
  epochs.leave(line);
  ASSERT_TRUE(epochs.try_claim_idle(line));
  EXPECT_FALSE(epochs.try_claim_idle(line));
  EXPECT_EQ(epochs.oldest(), UINT64_MAX);
  epochs.leave(line);
  ASSERT_TRUE(epochs.try_claim_idle(line));
  epochs.leave(line);
}

TEST(Epochs, AllLinesCanBeInUse) {
  Epochs epochs;
  std::array<bool, Epochs::kLines> used{};
  for (uint32_t i = 0; i < Epochs::kLines; ++i) {
    const uint32_t line = epochs.enter();
    ASSERT_LT(line, Epochs::kLines);
    EXPECT_FALSE(used[line]);
    used[line] = true;
  }
  // The next one waits until one leaves.
  std::atomic<bool> entered{false};
  std::jthread late([&] {
    const uint32_t line = epochs.enter();
    entered = true;
    epochs.leave(line);
  });
  std::this_thread::yield();
  EXPECT_FALSE(entered.load());
  epochs.leave(17);
  late.join();
  EXPECT_TRUE(entered.load());
  for (uint32_t i = 0; i < Epochs::kLines; ++i) {
    if (i != 17) epochs.leave(i);
  }
  EXPECT_EQ(epochs.oldest(), UINT64_MAX);
}

// A published pointer is exchanged all the time; the old thing is poisoned as soon as the epochs
// say that nobody can see it. A reader inside must never find poison. The thing's members are
// plain: the thread sanitizer sees a reuse that is not ordered after the read.
struct Thing {
  static constexpr uint64_t kPoison = 0xdead;
  uint64_t value = 0;
  uint64_t twice = 0;
};

class Published {
 public:
  explicit Published(uint32_t things) : things_(things) {
    for (Thing& thing : things_)
      free_.push_back(&thing);
    publish(1);
  }

  void publish(uint64_t value) {
    reclaim();
    if (free_.empty()) return;  // readers hold all of them back
    Thing* const thing = free_.front();
    free_.pop_front();
    thing->value = value;
    thing->twice = 2 * value;
    Thing* const old = current_.exchange(thing, std::memory_order_seq_cst);
    if (old != nullptr) retired_.push_back(Retired{old, epochs_.advance()});
    published_.fetch_add(1, std::memory_order_relaxed);
  }
  void reclaim() {
    const uint64_t oldest = epochs_.oldest();
    while (!retired_.empty() && retired_.front().stamp <= oldest) {
      Thing* const thing = retired_.front().thing;
      thing->value = Thing::kPoison;
      thing->twice = Thing::kPoison;
      free_.push_back(thing);
      retired_.pop_front();
    }
  }
  // Whether what was seen was whole.
  bool read() const {
    const Thing* const thing = current_.load(std::memory_order_seq_cst);
    const uint64_t value = thing->value;
    // A second look, as a decoder takes: it must still be there.
    const uint64_t twice = thing->twice;
    return value != Thing::kPoison && twice == 2 * value && thing->value == value;
  }
  Epochs& epochs() { return epochs_; }
  uint64_t published() const { return published_.load(std::memory_order_relaxed); }
  size_t retired() const { return retired_.size(); }

 private:
  struct Retired {
    Thing* thing;
    uint64_t stamp;
  };

  Epochs epochs_;
  std::vector<Thing> things_;
  std::deque<Thing*> free_;
  std::deque<Retired> retired_;
  std::atomic<Thing*> current_{nullptr};
  std::atomic<uint64_t> published_{0};
};

TEST(EpochsConcurrent, NothingIsReusedUnderAReader) {
  // Few things, so that each is reused at once when it may be.
  Published published(3);
  std::atomic<uint32_t> reading{3};
  std::atomic<uint64_t> torn{0};
  tuck::test::run_threads(4, [&](uint32_t thread) {
    if (thread == 3) {
      for (uint64_t value = 2; reading.load() != 0; ++value)
        published.publish(value);
      return;
    }
    tuck::test::Random random(tuck::test::seed() + thread);
    // Until enough has been replaced under the readers, however late the writer gets a processor.
    for (uint32_t i = 0; i < tuck::test::scaled(200000) || published.published() <= 100; ++i) {
      const uint32_t line = published.epochs().enter();
      if (!published.read()) ++torn;
      if (random.one_in(4)) {
        published.epochs().step_out(line);
        published.epochs().step_in(line);
        if (!published.read()) ++torn;
      }
      published.epochs().leave(line);
    }
    --reading;
  });
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_GT(published.published(), 100u);
  published.reclaim();
  EXPECT_EQ(published.retired(), 0u);
}

}  // namespace
}  // namespace tuck

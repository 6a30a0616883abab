// The system has no more memory from a random moment on, and in half of the runs it has some again
// later: writes are refused, and that is all. Each run is one small engine with several threads on
// it, through the swap area or as clients of a server, and an oracle for every byte.
//
// A run follows from its seed, which a failure names; TUCK_RUN=seed repeats it alone.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "tests/faults/disk.h"
#include "tests/faults/watchdog.h"
#include "tests/nbd/test_server.h"
#include "tests/support/scale.h"
#include "tests/support/test_source.h"
#include "tests/support/threads.h"

namespace tuck::test {
namespace {

constexpr uint64_t kKiB = 1024;

struct Setting {
  engine::EngineOptions engine;
  engine::CodecSetting codec;
  bool table_from_the_start = false;
  uint64_t disk_bytes = 0;
  uint64_t piece_bytes = 0;
  uint32_t threads = 0;
  uint32_t steps = 0;  // a thread
  // Memory fails from this populate on, counted from when the threads begin.
  uint64_t fails_at = 0;
  // The first thread brings it back before this step of its own; steps: at the end only.
  uint32_t back_at = 0;
  bool over_nbd = false;
};

Setting draw(Random& random, MemorySource& source) {
  Setting s;
  s.engine.memory = &source;
  s.engine.reserve_bytes = random.between(16, 512) * kKiB;
  if (random.one_in(3)) {
    s.engine.empty_reserve =
        random.one_in(3) ? engine::EmptyReserve::refuse : engine::EmptyReserve::wait;
  }
  if (random.one_in(3)) s.engine.memory_limit_bytes = random.between(1024, 3072) * kKiB;
  const engine::CodecKind kinds[] = {engine::CodecKind::lz4, engine::CodecKind::zstd,
                                     engine::CodecKind::none};
  s.codec.kind = kinds[random.below(3)];
  s.codec.level = s.codec.kind == engine::CodecKind::none ? 0 : 1;
  s.table_from_the_start = random.one_in(3);
  s.disk_bytes = random.between(1024, 8192) * kKiB;
  s.piece_bytes = random.between(3000, 60'000);
  s.threads = random.below32(3) + 2;
  s.steps = random.below32(100) + 50;
  s.fails_at = random.between(1, 24);
  s.back_at = random.one_in(2) ? random.below32(s.steps) : s.steps;
  s.over_nbd = random.one_in(4);
  return s;
}

// What a run works on.
class Subject {
 public:
  explicit Subject(const Setting& s) {
    if (s.over_nbd) {
      TestServerOptions options;
      options.engine = s.engine;
      options.codec = s.codec;
      options.disk_bytes = s.disk_bytes;
      options.server.workers = 1 + s.threads % 2;
      options.server.connections_max = 16;
      server_ = std::make_unique<TestServer>(std::move(options));
      return;
    }
    auto created = engine::Engine::create(s.engine);
    if (!created) std::abort();
    engine_ = std::move(*created);
    engine::AreaOptions area;
    area.slots = (s.disk_bytes + kPageSize - 1) / kPageSize;
    area.codec = s.codec;
    area.populate_table = s.table_from_the_start;
    const auto id = engine_->add_area(area);
    if (!id) std::abort();
    area_ = std::make_unique<vm::SwapArea>(*engine_, *id, s.disk_bytes);
  }
  ~Subject() {
    if (!engine_) return;
    engine_->quiesce();
    engine_->verify();
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  std::unique_ptr<Disk> disk() {
    if (server_) return std::make_unique<NbdDisk>(server_->unix_uri());
    return std::make_unique<AreaDisk>(*area_);
  }
  engine::Engine& engine() { return server_ ? server_->engine() : *engine_; }

 private:
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<vm::SwapArea> area_;
};

struct Totals {
  uint64_t failed_populates = 0;
  uint64_t refused_writes = 0;
  uint32_t runs_with_refusals = 0;
};

void run(uint64_t run_seed, Totals& totals) {
  TestSource source;
  Random random(run_seed);
  const Setting s = draw(random, source);
  Subject subject(s);
  std::vector<OwnedBytes> owned;
  std::vector<std::unique_ptr<Disk>> disks;
  for (uint32_t i = 0; i < s.threads; ++i) {
    owned.emplace_back(s.disk_bytes, s.piece_bytes, i, s.threads);
    disks.push_back(subject.disk());
  }
  source.fail_populate(s.fails_at, true);
  std::vector<std::string> wrong(s.threads);
  run_threads(s.threads, [&](uint32_t i) {
    Random own(mix(run_seed, i));
    for (uint32_t step = 0; step < s.steps && wrong[i].empty(); ++step) {
      if (i == 0 && step == s.back_at) source.fail_nothing();
      wrong[i] = owned[i].step(*disks[i], own);
    }
  });
  for (uint32_t i = 0; i < s.threads; ++i) {
    EXPECT_EQ(wrong[i], "") << "in thread " << i;
    EXPECT_EQ(owned[i].check(*disks[i]), "") << "after thread " << i;
  }
  // Memory is back: all can be written again. At the limit there may be no room for all.
  source.fail_nothing();
  const bool has_limit = s.engine.memory_limit_bytes != 0;
  for (uint32_t i = 0; i < s.threads && !has_limit; ++i) {
    const auto bring_room = [&] {
      subject.engine().maintain();
      std::this_thread::yield();
      return true;
    };
    EXPECT_EQ(owned[i].fill(*disks[i], random, bring_room), "") << "of thread " << i;
  }
  uint64_t refused = 0;
  for (uint32_t i = 0; i < s.threads; ++i) {
    EXPECT_EQ(owned[i].check(*disks[i]), "") << "of thread " << i << ", at the end";
    refused += owned[i].refused();
  }
  totals.failed_populates += source.failures();
  totals.refused_writes += refused;
  totals.runs_with_refusals += refused != 0 ? 1 : 0;
}

TEST(FailingMemory, FromARandomMomentOn) {
  Watchdog watchdog;
  Totals totals;
  const char* const one = std::getenv("TUCK_RUN");
  const uint32_t runs = one != nullptr ? 1 : scaled(1000);
  for (uint32_t i = 0; i < runs && !testing::Test::HasFailure(); ++i) {
    const uint64_t run_seed = one != nullptr ? std::strtoull(one, nullptr, 0) : mix(seed(), i);
    const std::string name = "TUCK_RUN=" + std::to_string(run_seed);
    SCOPED_TRACE(name);
    watchdog.begin(name);
    run(run_seed, totals);
  }
  std::printf("%u runs, %u of them with refused writes: %llu writes, %llu failed populates\n", runs,
              totals.runs_with_refusals, static_cast<unsigned long long>(totals.refused_writes),
              static_cast<unsigned long long>(totals.failed_populates));
  // The test has tested something.
  if (one == nullptr) {
    EXPECT_GT(totals.runs_with_refusals, runs / 10);
  }
}

}  // namespace
}  // namespace tuck::test

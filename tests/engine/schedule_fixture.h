// An engine without a background thread, pages by version, and the questions that schedules ask.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tests/engine/harness.h"
#include "tests/support/schedule.h"

namespace tuck::engine::test {

using tuck::test::Actor;
using tuck::test::Page;
using tuck::test::Schedule;

class EngineSchedule : public Schedule {
 protected:
  static constexpr uint32_t kSlots = 1024;

  EngineSchedule() { make(quiet_options(source_)); }
  void make(const EngineOptions& options) {
    engine_.reset();
    engine_ = make_engine(options);
    area_ = tuck::engine::test::add_area(*engine_, kSlots);
  }

  // Random bytes are kept raw, so that objects are all of one size, and a place that is free for
  // one is free for the next.
  PageKey key(uint32_t at, uint32_t version) const {
    return PageKey{tuck::test::seed(), value(area_), at, version};
  }
  Page page(uint32_t at, uint32_t version, PageKind kind = PageKind::random) const {
    Page bytes;
    fill_page(key(at, version), kind, bytes.data());
    return bytes;
  }
  Errc store(uint32_t at, uint32_t version, PageKind kind = PageKind::random) {
    return engine_->store(area_, slot(at), 1, page(at, version, kind).data()).code;
  }
  Errc free(uint32_t at, uint32_t pages = 1) { return engine_->free(area_, slot(at), pages).code; }
  // version 0: empty.
  bool holds(uint32_t at, uint32_t version, PageKind kind = PageKind::random) {
    Page bytes;
    if (engine_->load(area_, slot(at), 1, bytes.data()).code != Errc::ok) return false;
    if (version == 0) return tuck::test::is_zero_page(bytes.data());
    return is_page(key(at, version), kind, bytes.data());
  }
  Entry entry(uint32_t at) {
    Page bytes;
    Entry seen;
    const Pin pin = engine_->pin();
    EXPECT_EQ(engine_->load(pin, area_, slot(at), 1, bytes.data(), &seen).code, Errc::ok);
    return seen;
  }
  uint64_t place(uint32_t at) { return entry(at).location(); }

  // A read-modify-write, cut in two: what it saw, and the store that stands on it.
  RunResult store_over(const Pin& pin, uint32_t at, Entry seen, uint32_t version) {
    return engine_->store_if(pin, area_, slot(at), 1, page(at, version).data(), &seen);
  }
  // The whole of it, as an actor.
  RunResult read_modify_write(uint32_t at, uint32_t version) {
    Page bytes;
    Entry seen;
    const Pin pin = engine_->pin();
    EXPECT_EQ(engine_->load(pin, area_, slot(at), 1, bytes.data(), &seen).code, Errc::ok);
    return store_over(pin, at, seen, version);
  }

  // Gives back what can be given back now, without waiting for anybody.
  void maintain() {
    for (int i = 0; i < 3; ++i)
      engine_->maintain();
  }
  // Stores new pages in [from, to), which would take every place that is free, and tells whether
  // one of them took this one.
  bool is_taken_by_others(uint64_t location, uint32_t from, uint32_t to, uint32_t version) {
    bool taken = false;
    for (uint32_t at = from; at < to; ++at) {
      EXPECT_EQ(store(at, version), Errc::ok);
      taken = taken || place(at) == location;
    }
    return taken;
  }
  uint64_t objects() const {
    uint64_t count = 0;
    for (const auto& line : engine_->stats().ledger.classes)
      count += line.objects;
    return count;
  }
  // Nobody is inside any more: nothing leaked, nothing freed twice, and every figure is true.
  void expect_clean() {
    settle(*engine_);
    engine_->verify();
    const Stats stats = engine_->stats();
    EXPECT_EQ(stats.retired_objects, 0u);
    EXPECT_EQ(objects(), stats.content.pages_compressed + stats.content.pages_incompressible);
    EXPECT_EQ(stats.operations.loads_corrupt, 0u);
    expect_ledger_is_true(*engine_, source_);
  }

  TestSource source_;
  std::unique_ptr<Engine> engine_;
  AreaId area_{};
};

}  // namespace tuck::engine::test

// The engine, one call a page unless it says otherwise, on an area in which every slot is stored:
// as a swap device that has been in use for a while. Without the background thread, so that a run's
// instructions are all its own.
//
// Publication is not timed apart, because it cannot be called apart. store/same_filled is the
// nearest: detection, an epoch, one publication, and nothing to compress or to put away.
#include "bench/micro/operation.h"
#include "bench/micro/page_set.h"
#include "engine/engine.h"

namespace tuck::bench::micro {

namespace {

using engine::Engine;

constexpr uint32_t kBatch = 1024;
constexpr uint32_t kFreeBatch = 4096;
// One leaf of the slot table: what free() does in one epoch.
constexpr uint32_t kRun = 512;
// Beside the pages, for frames that are ready and classes that are sparse.
constexpr uint64_t kReserveBytes = uint64_t{64} << 20;

// Which slots a round works on: others than the last ones, so that nothing is in a cache by luck.
class Round {
 public:
  Round(uint64_t slots, uint32_t batch) noexcept : slots_(slots), batch_(batch) {}
  void next() noexcept { first_ = (first_ + batch_) % slots_; }
  uint32_t first() const noexcept { return static_cast<uint32_t>(first_); }
  uint32_t last() const noexcept { return first() + batch_; }

 private:
  uint64_t slots_;
  uint64_t first_ = 0;
  uint32_t batch_;
};

class StoredPages : public Work {
 public:
  StoredPages(PageSet pages, const char* codec, uint32_t batch)
      : round_(pages.pages(), batch), pages_(std::move(pages)) {
    engine::EngineOptions options;
    options.background_thread = false;
    // Never reached. Without it the address space is as large as the machine's memory asks for,
    // which is more than valgrind has to give.
    options.memory_limit_bytes = 2 * pages_.pages() * kPageSize + kReserveBytes;
    auto engine = Engine::create(options);
    TUCK_CHECK(engine);
    engine_ = std::move(*engine);
    engine::AreaOptions area;
    area.name = "micro";
    area.slots = pages_.pages();
    const auto setting = engine::parse_codec(codec);
    TUCK_CHECK(setting);
    area.codec = *setting;
    const auto id = engine_->add_area(area);
    TUCK_CHECK(id);
    area_ = *id;
    store(0, static_cast<uint32_t>(pages_.pages()));
  }

 protected:
  void store(uint32_t first, uint32_t last) noexcept {
    for (uint32_t slot = first; slot < last; ++slot) {
      const auto result = engine_->store(area_, SlotIndex{slot}, 1, pages_.page(slot));
      TUCK_CHECK(result.code == Errc::ok);
    }
  }
  void load(uint32_t first, uint32_t last) noexcept {
    for (uint32_t slot = first; slot < last; ++slot) {
      const auto result = engine_->load(area_, SlotIndex{slot}, 1, out_);
      TUCK_CHECK(result.code == Errc::ok);
    }
  }
  void free(uint32_t first, uint32_t last, uint32_t run) noexcept {
    for (uint32_t slot = first; slot < last; slot += run) {
      const auto result = engine_->free(area_, SlotIndex{slot}, run);
      TUCK_CHECK(result.code == Errc::ok);
    }
  }

  Round round_;

 private:
  PageSet pages_;
  std::unique_ptr<Engine> engine_;
  AreaId area_{};
  alignas(kPageSize) std::byte out_[kPageSize];
};

class Store : public StoredPages {
 public:
  Store(PageSet pages, const char* codec) : StoredPages(std::move(pages), codec, kBatch) {}
  void prepare() override { round_.next(); }
  void run() override { store(round_.first(), round_.last()); }
};

class Load : public StoredPages {
 public:
  Load(PageSet pages, const char* codec) : StoredPages(std::move(pages), codec, kBatch) {}
  void prepare() override { round_.next(); }
  void run() override { load(round_.first(), round_.last()); }
};

// What one round has freed is stored again before the next.
template <uint32_t kPagesACall>
class Free : public StoredPages {
 public:
  explicit Free(PageSet pages) : StoredPages(std::move(pages), "lz4", kFreeBatch) { run(); }
  void prepare() override {
    store(round_.first(), round_.last());
    round_.next();
  }
  void run() override { free(round_.first(), round_.last(), kPagesACall); }
};

using MakePages = PageSet (*)(uint64_t pages);

// The codec as a type, because an operation is made by a plain function.
struct Lz4 {
  static constexpr const char* kName = "lz4";
};
struct Zstd {
  static constexpr const char* kName = "zstd:-1";
};

template <class T, MakePages kPages, class Codec = Lz4>
std::unique_ptr<Work> make(uint64_t pages) {
  return std::make_unique<T>(kPages(pages), Codec::kName);
}

template <class T>
std::unique_ptr<Work> make_free(uint64_t pages) {
  return std::make_unique<T>(quick_pages(pages));
}

}  // namespace

std::vector<Operation> engine_operations() {
  const std::string synthetic = "SYNTHETIC pages";
  const std::string same = "same-filled pages";
  const std::string random = "random bytes";
  const std::string quick = "random bytes of every length, then zeroes";
  return {
      {"engine/store/lz4", synthetic, kBatch, true, make<Store, synthetic_pages>},
      {"engine/store/zstd:-1", synthetic, kBatch, false, make<Store, synthetic_pages, Zstd>},
      {"engine/store/same_filled", same, kBatch, true, make<Store, same_filled_pages>},
      {"engine/store/incompressible", random, kBatch, false, make<Store, incompressible_pages>},
      {"engine/load/lz4", synthetic, kBatch, true, make<Load, synthetic_pages>},
      {"engine/load/zstd:-1", synthetic, kBatch, false, make<Load, synthetic_pages, Zstd>},
      {"engine/load/same_filled", same, kBatch, false, make<Load, same_filled_pages>},
      {"engine/load/incompressible", random, kBatch, false, make<Load, incompressible_pages>},
      {"engine/free/one_by_one", quick, kFreeBatch, false, make_free<Free<1>>},
      {"engine/free/batched", quick, kFreeBatch, true, make_free<Free<kRun>>},
  };
}

}  // namespace tuck::bench::micro

// How long it takes to see whether a page repeats one word: every store begins with it.
#include <array>

#include "bench/frame/stopwatch.h"
#include "bench/micro/operation.h"
#include "bench/micro/page_set.h"
#include "engine/same_filled.h"

namespace tuck::bench::micro {

namespace {

constexpr uint32_t kBatch = 2048;
constexpr size_t kNowhere = kPageSize;

// Pages of one repeated word, but for the byte at this offset.
class Detect : public Work {
 public:
  Detect(uint64_t pages, size_t differs_at) : pages_(same_filled_pages(pages)) {
    for (uint64_t i = 0; i < pages && differs_at != kNowhere; ++i)
      pages_.page(i)[differs_at] ^= std::byte{0x80};
    expected_ = differs_at == kNowhere ? kBatch : 0;
  }

  void prepare() override { first_ = (first_ + kBatch) % pages_.pages(); }
  void run() override {
    uint32_t found = 0;
    for (uint64_t i = first_; i < first_ + kBatch; ++i) {
      uint64_t word = 0;
      found += engine::is_same_filled(pages_.page(i), &word) ? 1u : 0u;
      keep(word);
    }
    TUCK_CHECK(found == expected_);
  }

 private:
  PageSet pages_;
  uint64_t first_ = 0;
  uint32_t expected_ = 0;
};

template <size_t kDiffersAt>
std::unique_ptr<Work> make(uint64_t pages) {
  return std::make_unique<Detect>(pages, kDiffersAt);
}

}  // namespace

std::vector<Operation> same_filled_operations() {
  const std::string pages = "one word repeated, but for a byte";
  return {
      {"same_filled/first_word_differs", pages, kBatch, false, make<0>},
      {"same_filled/middle_differs", pages, kBatch, false, make<kPageSize / 2>},
      {"same_filled/last_word_differs", pages, kBatch, false, make<kPageSize - 1>},
      {"same_filled/all_the_same", "one word repeated", kBatch, false, make<kNowhere>},
  };
}

}  // namespace tuck::bench::micro

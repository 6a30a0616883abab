#include "bench/corpus/statistics.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace tuck::corpus {

namespace {

constexpr size_t kUnitPages = 4;
constexpr int kZstdLevel = -1;

// The output sizes of both codecs, capped at the input's.
class Compressor {
 public:
  Compressor()
      : context_(ZSTD_createCCtx()), output_(ZSTD_compressBound(kUnitPages * kPageSize) + 64) {
    TUCK_CHECK(context_ != nullptr);
  }

  size_t lz4(std::span<const std::byte> input) {
    const int size = LZ4_compress_default(
        reinterpret_cast<const char*>(input.data()), reinterpret_cast<char*>(output_.data()),
        static_cast<int>(input.size()), static_cast<int>(output_.size()));
    return size <= 0 ? input.size() : std::min(input.size(), static_cast<size_t>(size));
  }
  size_t zstd(std::span<const std::byte> input) {
    const size_t size = ZSTD_compressCCtx(context_.get(), output_.data(), output_.size(),
                                          input.data(), input.size(), kZstdLevel);
    return ZSTD_isError(size) ? input.size() : std::min(input.size(), size);
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::vector<std::byte> output_;
};

bool is_zero_word(std::span<const std::byte, kPageSize> page) noexcept {
  uint64_t word = 0;
  std::memcpy(&word, page.data(), sizeof(word));
  return word == 0;
}

// Returns whether the page was same-filled.
bool add_page(Statistics& statistics, std::span<const std::byte, kPageSize> page,
              Compressor& compressor) {
  ++statistics.pages;
  if (is_same_filled(page)) {
    ++statistics.same_filled;
    statistics.zero += is_zero_word(page);
    return true;
  }
  const size_t size = compressor.lz4(page);
  statistics.incompressible += size > kIncompressibleBytes;
  statistics.lz4_4k_bytes += size;
  statistics.zstd_4k_bytes += compressor.zstd(page);
  const size_t step = Statistics::kHistogramStep;
  ++statistics.lz4_4k_histogram[(size + step - 1) / step];
  return false;
}

}  // namespace

bool is_same_filled(std::span<const std::byte, kPageSize> page) noexcept {
  return std::memcmp(page.data(), page.data() + sizeof(uint64_t), kPageSize - sizeof(uint64_t)) ==
         0;
}

Statistics measure(std::span<const std::byte> bytes) {
  TUCK_CHECK(bytes.size() % kPageSize == 0);
  Statistics statistics;
  Compressor compressor;
  while (!bytes.empty()) {
    const auto unit = bytes.first(std::min(bytes.size(), kUnitPages * kPageSize));
    bool all_same = true;
    for (size_t at = 0; at < unit.size(); at += kPageSize) {
      const bool same = add_page(statistics, unit.subspan(at).first<kPageSize>(), compressor);
      all_same = all_same && same;
    }
    if (!all_same) {
      statistics.lz4_16k_bytes += compressor.lz4(unit);
      statistics.zstd_16k_bytes += compressor.zstd(unit);
    }
    bytes = bytes.subspan(unit.size());
  }
  return statistics;
}

double Statistics::share(uint64_t part) const noexcept {
  return pages == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(pages);
}

double Statistics::ratio(uint64_t compressed_bytes) const noexcept {
  if (compressed_bytes == 0) return 0.0;
  return static_cast<double>(compressed_pages() * kPageSize) /
         static_cast<double>(compressed_bytes);
}

double Statistics::lz4_4k_mean() const noexcept {
  if (compressed_pages() == 0) return 0.0;
  return static_cast<double>(lz4_4k_bytes) / static_cast<double>(compressed_pages());
}

double Statistics::lz4_gain_16k() const noexcept {
  if (lz4_4k_bytes == 0) return 0.0;
  return 1.0 - static_cast<double>(lz4_16k_bytes) / static_cast<double>(lz4_4k_bytes);
}

double Statistics::zstd_gain_16k() const noexcept {
  if (zstd_4k_bytes == 0) return 0.0;
  return 1.0 - static_cast<double>(zstd_16k_bytes) / static_cast<double>(zstd_4k_bytes);
}

uint32_t Statistics::lz4_4k_quantile(double share) const noexcept {
  const double wanted = share * static_cast<double>(compressed_pages());
  uint64_t seen = 0;
  for (uint32_t i = 0; i < lz4_4k_histogram.size(); ++i) {
    seen += lz4_4k_histogram[i];
    if (static_cast<double>(seen) >= wanted) return i * kHistogramStep;
  }
  return kPageSize;
}

void Statistics::add(const Statistics& other) noexcept {
  pages += other.pages;
  zero += other.zero;
  same_filled += other.same_filled;
  incompressible += other.incompressible;
  lz4_4k_bytes += other.lz4_4k_bytes;
  lz4_16k_bytes += other.lz4_16k_bytes;
  zstd_4k_bytes += other.zstd_4k_bytes;
  zstd_16k_bytes += other.zstd_16k_bytes;
  for (size_t i = 0; i < lz4_4k_histogram.size(); ++i) {
    lz4_4k_histogram[i] += other.lz4_4k_histogram[i];
  }
}

}  // namespace tuck::corpus

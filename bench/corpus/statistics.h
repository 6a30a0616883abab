// What a corpus is like: how much of it is trivial, and how well the rest compresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/base.h"

namespace tuck::corpus {

// A page counts as incompressible if lz4 saves less than 1/16 of it.
inline constexpr uint32_t kIncompressibleBytes = kPageSize - kPageSize / 16;

struct Statistics {
  static constexpr uint32_t kHistogramStep = 256;

  uint64_t pages = 0;
  uint64_t zero = 0;
  uint64_t same_filled = 0;  // one 8-byte word repeated; the zero pages among them
  uint64_t incompressible = 0;

  // The codecs' figures are over the pages that are not same-filled, output longer than the input
  // counted as the input. 16 KiB units are four pages in the order of the file, same-filled ones
  // between others included as in a pool; units of only such pages are left out.
  uint64_t lz4_4k_bytes = 0;
  uint64_t lz4_16k_bytes = 0;
  uint64_t zstd_4k_bytes = 0;  // level -1
  uint64_t zstd_16k_bytes = 0;
  // Pages by lz4 output in steps of kHistogramStep bytes, rounded up.
  std::array<uint64_t, kPageSize / kHistogramStep + 1> lz4_4k_histogram{};

  uint64_t compressed_pages() const noexcept { return pages - same_filled; }
  double share(uint64_t part) const noexcept;
  // Input over output of a codec's sum above.
  double ratio(uint64_t compressed_bytes) const noexcept;
  double lz4_4k_mean() const noexcept;
  // What larger units save: 1 − 16 KiB over 4 KiB.
  double lz4_gain_16k() const noexcept;
  double zstd_gain_16k() const noexcept;
  // The lz4 size that this share (0 … 1) of the pages does not exceed, to kHistogramStep.
  uint32_t lz4_4k_quantile(double share) const noexcept;

  void add(const Statistics& other) noexcept;
};

bool is_same_filled(std::span<const std::byte, kPageSize> page) noexcept;

// Pages back to back; a whole number of them.
Statistics measure(std::span<const std::byte> bytes);

}  // namespace tuck::corpus

// Pages with the statistics of real ones, from a seed, for machines without a captured corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/base.h"

namespace tuck::corpus {

// A mix of what processes keep in their memory; README.md has the kinds and how close they come.
// Page index i is the same bytes for a seed on every machine, whatever else was asked for, so that
// threads can fill pages in any order and a checker can make a page anew instead of keeping it.
// Pages that are not same-filled all differ. Pages that follow each other resemble each other as in
// a process, so ask for them in order where larger units matter.
class SyntheticPages {
 public:
  explicit SyntheticPages(uint64_t seed) noexcept : seed_(seed) {}

  // No allocation, any thread.
  void fill(uint64_t index, std::span<std::byte, kPageSize> out) const noexcept;

 private:
  uint64_t seed_;
};

}  // namespace tuck::corpus

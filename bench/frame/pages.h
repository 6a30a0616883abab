// The pages that a run works on: one set, the same for all that is compared.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/base.h"
#include "bench/corpus/corpus.h"

namespace tuck::bench {

struct PagesWanted {
  std::vector<std::string> files;  // empty: the machine's cached corpora, made when there are none
  bool synthetic = false;          // generated pages, without a look for others
};

struct NamedPages {
  std::string name;  // "python3"
  std::span<const std::byte> bytes;

  uint64_t pages() const noexcept { return bytes.size() / kPageSize; }
  const std::byte* page(uint64_t index) const noexcept { return bytes.data() + index * kPageSize; }
};

// In memory, read in once. Not movable while a NamedPages is in use.
class Pages {
 public:
  // Errors: a file that was asked for cannot be read, or no pages at all could be had.
  static Result<Pages, Error> get(const PagesWanted& wanted);

  const std::vector<NamedPages>& corpora() const noexcept { return corpora_; }
  // All corpora, back to back.
  const NamedPages& all() const noexcept { return all_; }
  bool synthetic() const noexcept { return synthetic_; }
  // For a report's head: what they are, how many, and why they are synthetic where they are.
  const std::string& origin() const noexcept { return origin_; }
  // Pages that are no repetition of one word: what a codec has to work on.
  std::vector<const std::byte*> pages_to_compress() const;

 private:
  void use(const std::vector<std::string>& names, const std::vector<size_t>& bytes);

  std::vector<std::byte> memory_;
  std::vector<NamedPages> corpora_;
  NamedPages all_;
  bool synthetic_ = false;
  std::string origin_;
};

}  // namespace tuck::bench

// The engine and the codec that it uses, side by side on the same pages: for the tables that say
// what the engine adds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/base.h"
#include "bench/peers/bare_codec.h"
#include "engine/engine.h"

namespace tuck::bench {

using PageList = std::vector<const std::byte*>;

// One thread's share of the bare codec's work: its context, its output, and what it has compressed,
// back to back. A page that does not get smaller than the engine would keep it in is copied, as the
// engine does.
class BareStore {
 public:
  BareStore(std::unique_ptr<BareCodec> codec, std::span<const std::byte* const> pages);

  // Compresses pages first … first + count, into one buffer over and over: the codec alone.
  void compress(size_t first, size_t count) noexcept;
  void decompress(size_t first, size_t count, std::byte* out) noexcept;
  size_t pages() const noexcept { return pages_.size(); }
  // A page's, compressed.
  uint32_t bytes_of(size_t page) const noexcept { return places_[page].length; }
  // Of all pages, compressed.
  uint64_t bytes() const noexcept { return packed_.size(); }

 private:
  struct Place {
    size_t offset = 0;
    uint32_t length = 0;  // kPageSize: as it is
  };
  std::unique_ptr<BareCodec> codec_;
  std::span<const std::byte* const> pages_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> packed_;
  std::vector<Place> places_;
};

// An engine with one area of so many slots, all settings as they come.
struct EngineUnderTest {
  std::unique_ptr<engine::Engine> engine;
  AreaId area{};

  static Result<EngineUnderTest, Error> create(const std::string& codec, uint64_t slots);
  // One call a page, as a swap device is used. false: the engine refused one.
  bool store(std::span<const std::byte* const> pages, size_t first, size_t count,
             size_t slot_offset = 0) noexcept;
  bool load(size_t first, size_t count, std::byte* out) noexcept;
};

// Codecs by the names that tuck has for them ("lz4", "zstd:-1").
Result<std::unique_ptr<BareCodec>, Error> bare_codec(const std::string& name);

}  // namespace tuck::bench

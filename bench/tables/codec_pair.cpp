#include "bench/tables/codec_pair.h"

#include <cstring>

namespace tuck::bench {

namespace {
// Scratch as large as the worst page needs.
constexpr size_t kScratchBytes = size_t{2} * kPageSize;
}  // namespace

BareStore::BareStore(std::unique_ptr<BareCodec> codec, std::span<const std::byte* const> pages)
    : codec_(std::move(codec)), pages_(pages), scratch_(kScratchBytes) {
  places_.reserve(pages.size());
  for (const std::byte* page : pages) {
    const uint32_t length = codec_->compress(page, kPageSize, scratch_.data(), kPageSize);
    const std::byte* const from = length == 0 ? page : scratch_.data();
    const uint32_t bytes = length == 0 ? static_cast<uint32_t>(kPageSize) : length;
    places_.push_back({packed_.size(), bytes});
    packed_.insert(packed_.end(), from, from + bytes);
  }
}

void BareStore::compress(size_t first, size_t count) noexcept {
  for (size_t i = first; i < first + count; ++i)
    codec_->compress(pages_[i], kPageSize, scratch_.data(), kPageSize);
}

void BareStore::decompress(size_t first, size_t count, std::byte* out) noexcept {
  for (size_t i = first; i < first + count; ++i) {
    const Place& place = places_[i];
    const std::byte* const from = packed_.data() + place.offset;
    if (place.length == kPageSize)
      std::memcpy(out, from, kPageSize);
    else
      TUCK_CHECK(codec_->decompress(from, place.length, out, kPageSize));
  }
}

Result<EngineUnderTest, Error> EngineUnderTest::create(const std::string& codec, uint64_t slots) {
  const auto setting = engine::parse_codec(codec);
  if (!setting) return setting.error();
  auto engine = engine::Engine::create({});
  if (!engine) return engine.error();
  EngineUnderTest made;
  made.engine = std::move(*engine);
  engine::AreaOptions options;
  options.name = "bench";
  options.slots = slots;
  options.codec = *setting;
  const auto area = made.engine->add_area(options);
  if (!area) return area.error();
  made.area = *area;
  return made;
}

bool EngineUnderTest::store(std::span<const std::byte* const> pages, size_t first, size_t count,
                            size_t slot_offset) noexcept {
  for (size_t i = first; i < first + count; ++i) {
    const SlotIndex slot{static_cast<uint32_t>(slot_offset + i)};
    if (engine->store(area, slot, 1, pages[i]).code != Errc::ok) return false;
  }
  return true;
}

bool EngineUnderTest::load(size_t first, size_t count, std::byte* out) noexcept {
  for (size_t i = first; i < first + count; ++i) {
    if (engine->load(area, SlotIndex{static_cast<uint32_t>(i)}, 1, out).code != Errc::ok)
      return false;
  }
  return true;
}

Result<std::unique_ptr<BareCodec>, Error> bare_codec(const std::string& name) {
  const auto setting = engine::parse_codec(name);
  if (!setting) return setting.error();
  switch (setting->kind) {
    case engine::CodecKind::lz4:
      return BareCodec::lz4();
    case engine::CodecKind::zstd:
      return BareCodec::zstd(setting->level);
    case engine::CodecKind::none:
      break;
  }
  return Error{Errc::invalid, "there is no bare codec for " + name};
}

}  // namespace tuck::bench

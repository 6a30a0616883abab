#include "engine/codec_setting.h"

#include <charconv>

namespace tuck::engine {
namespace {

constexpr int kAccelerationMax = 65536;
constexpr int kZstdLevelMin = -131072;
constexpr int kZstdLevelMax = 22;

Error bad_codec(std::string_view text) {
  return Error{Errc::invalid, "'" + std::string(text) +
                                  "' is not a codec: use lz4, lz4:ACCELERATION (1 to 65536), zstd, "
                                  "zstd:LEVEL (-131072 to 22, not 0) or none"};
}

}  // namespace

bool is_valid(CodecSetting setting) noexcept {
  switch (setting.kind) {
    case CodecKind::none:
      return true;
    case CodecKind::lz4:
      return setting.level >= 1 && setting.level <= kAccelerationMax;
    case CodecKind::zstd:
      return setting.level >= kZstdLevelMin && setting.level <= kZstdLevelMax && setting.level != 0;
  }
  return false;
}

Result<CodecSetting, Error> parse_codec(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const bool has_level = colon != std::string_view::npos;
  int level = 0;
  if (has_level) {
    const std::string_view digits = text.substr(colon + 1);
    const char* const end = digits.data() + digits.size();
    const auto [rest, failure] = std::from_chars(digits.data(), end, level);
    if (failure != std::errc{} || rest != end || level == 0) return bad_codec(text);
  }
  if (name == "none" && !has_level) return CodecSetting{CodecKind::none, 0};
  if (name == "lz4") {
    if (has_level && (level < 1 || level > kAccelerationMax)) return bad_codec(text);
    return CodecSetting{CodecKind::lz4, has_level ? level : 1};
  }
  if (name == "zstd") {
    if (level < kZstdLevelMin || level > kZstdLevelMax) return bad_codec(text);
    // Level 1 where none is given: on pages the higher default of the library buys 1 % for twice
    // the time.
    return CodecSetting{CodecKind::zstd, has_level ? level : 1};
  }
  return bad_codec(text);
}

std::string to_string(CodecSetting setting) {
  switch (setting.kind) {
    case CodecKind::none:
      return "none";
    case CodecKind::lz4:
      return setting.level == 1 ? "lz4" : "lz4:" + std::to_string(setting.level);
    case CodecKind::zstd:
      return "zstd:" + std::to_string(setting.level);
  }
  return "none";
}

}  // namespace tuck::engine

// Which codec an area stores with. Stored pages keep the codec they were stored with.
#pragma once

#include <string>
#include <string_view>

#include "base/base.h"

namespace tuck::engine {

enum class CodecKind : uint8_t { none = 0, lz4 = 1, zstd = 2 };

// Aligned to its size: clang makes an atomic of it one instruction only then.
struct alignas(8) CodecSetting {
  CodecKind kind = CodecKind::lz4;
  // lz4: acceleration, 1 (densest) … 65536. zstd: level, −131072 … 22 without 0. none: 0.
  int level = 1;

  friend bool operator==(const CodecSetting&, const CodecSetting&) = default;
};

// Whether kind and level are of those above.
bool is_valid(CodecSetting setting) noexcept;

// Parses "none", "lz4", "lz4:ACCELERATION", "zstd", "zstd:LEVEL". The error names the text and the
// allowed forms.
Result<CodecSetting, Error> parse_codec(std::string_view text);

// The form that parse_codec() reads.
std::string to_string(CodecSetting setting);

}  // namespace tuck::engine

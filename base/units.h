// Sizes as people write them: 4096, 64K, 512M, 4G, 1T (powers of 1024; a trailing iB or B is
// allowed).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tuck {

// The error names the text and what is allowed. Whole numbers only, at most 2^63 − 1.
Result<uint64_t, Error> parse_size(std::string_view text);

// The shortest exact form with a suffix: 4096 → "4K", 4097 → "4097".
std::string format_size(uint64_t bytes);

// For people: three significant digits, "1.43 GiB".
std::string format_size_rounded(uint64_t bytes);

}  // namespace tuck

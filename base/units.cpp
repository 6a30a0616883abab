#include "base/units.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

namespace tuck {
namespace {

constexpr std::string_view kSuffixes = "KMGTP";

Error bad_size(std::string_view text) {
  return Error{Errc::invalid,
               "'" + std::string(text) +
                   "' is not a size: write a whole number of bytes, or one with K, M, "
                   "G or T behind it, as in 512M or 4G"};
}

}  // namespace

Result<uint64_t, Error> parse_size(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc{}) return bad_size(text);
  std::string_view suffix(rest, static_cast<size_t>(end - rest));
  unsigned shift = 0;
  if (!suffix.empty()) {
    const char letter = static_cast<char>(suffix[0] >= 'a' ? suffix[0] - 'a' + 'A' : suffix[0]);
    const size_t power = kSuffixes.find(letter);
    if (power != std::string_view::npos) {
      shift = static_cast<unsigned>(power + 1) * 10;
      suffix.remove_prefix(1);
      if (suffix.starts_with('i')) {
        suffix.remove_prefix(1);
        if (suffix != "B") return bad_size(text);
      }
    }
    if (!suffix.empty() && suffix != "B" && suffix != "b") return bad_size(text);
  }
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (number > (kMax >> shift)) return bad_size(text);
  return number << shift;
}

std::string format_size(uint64_t bytes) {
  unsigned power = 0;
  while (bytes != 0 && bytes % 1024 == 0 && power < kSuffixes.size()) {
    bytes /= 1024;
    ++power;
  }
  std::string text = std::to_string(bytes);
  if (power > 0) text += kSuffixes[power - 1];
  return text;
}

std::string format_size_rounded(uint64_t bytes) {
  auto amount = static_cast<double>(bytes);
  unsigned power = 0;
  // The bounds are where printf's rounding would add a digit.
  while (amount >= 999.5 && power < kSuffixes.size()) {
    amount /= 1024;
    ++power;
  }
  std::array<char, 32> text{};
  if (power == 0) {
    std::snprintf(text.data(), text.size(), "%llu B", static_cast<unsigned long long>(bytes));
  } else {
    const int decimals = amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
    std::snprintf(text.data(), text.size(), "%.*f %ciB", decimals, amount, kSuffixes[power - 1]);
  }
  return text.data();
}

}  // namespace tuck

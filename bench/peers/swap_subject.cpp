#include "bench/peers/swap_subject.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

namespace tuck::bench {

namespace {

constexpr std::string_view kDone = "done";
constexpr std::string_view kFailed = "failed ";

struct Field {
  std::string_view name;
  uint64_t SwapAnswer::*value;
};

// In the order of a line.
constexpr std::array<Field, 6> kFields{{{"ns", &SwapAnswer::ns},
                                        {"bytes", &SwapAnswer::bytes},
                                        {"swap_bytes", &SwapAnswer::swap_bytes},
                                        {"huge_bytes", &SwapAnswer::huge_bytes},
                                        {"folios", &SwapAnswer::folios},
                                        {"fallbacks", &SwapAnswer::fallbacks}}};

// Takes " NAME=NUMBER" off the text's front.
bool take(std::string_view& text, std::string_view name, uint64_t& number) {
  const std::string expected = fmt::format(" {}=", name);
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string to_line(const SwapAnswer& answer) {
  std::string line(kDone);
  for (const Field& field : kFields)
    line += fmt::format(" {}={}", field.name, answer.*field.value);
  return line;
}

std::string to_line(const Error& error) {
  return std::string(kFailed) + error.message;
}

Result<SwapAnswer, Error> parse_swap_answer(const std::string& line) {
  if (line.starts_with(kFailed)) return Error{Errc::invalid, line.substr(kFailed.size())};
  std::string_view rest = line;
  bool well = rest.starts_with(kDone);
  if (well) rest.remove_prefix(kDone.size());
  SwapAnswer answer;
  for (const Field& field : kFields)
    well = well && take(rest, field.name, answer.*field.value);
  if (!well || !rest.empty()) return Error{Errc::invalid, "no answer of a swap subject: " + line};
  return answer;
}

}  // namespace tuck::bench

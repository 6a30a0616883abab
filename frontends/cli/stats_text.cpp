#include "frontends/cli/stats_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "base/base.h"

namespace tuck::cli {
namespace {

constexpr const char* kMissing = "-";

// A member, or null where there is none.
const Json& at(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::optional<uint64_t> number_at(const Json& object, const char* key) {
  const Json& member = at(object, key);
  if (!member.is_number_unsigned()) return std::nullopt;
  return member.get<uint64_t>();
}

std::string text_at(const Json& object, const char* key) {
  const Json& member = at(object, key);
  return member.is_string() ? printable(member.get<std::string>()) : kMissing;
}

std::string count_at(const Json& object, const char* key) {
  const Json& member = at(object, key);
  return member.is_number_integer() ? member.dump() : kMissing;
}

std::string size_at(const Json& object, const char* key) {
  const std::optional<uint64_t> bytes = number_at(object, key);
  return bytes ? format_size_rounded(*bytes) : kMissing;
}

// A latency of an operation; there is none before the first request.
std::string latency_at(const Json& operation, const char* key) {
  const std::optional<uint64_t> nanoseconds = number_at(operation, key);
  const bool any = number_at(operation, "requests").value_or(0) > 0;
  return any && nanoseconds ? format_duration_ns(*nanoseconds) : kMissing;
}

std::string ratio_at(const Json& object, const char* key) {
  const Json& member = at(object, key);
  return member.is_number() ? fmt::format("{:.2f} : 1", member.get<double>()) : kMissing;
}

// "retired_bytes" → "retired".
std::string label_of(std::string key) {
  constexpr std::string_view kUnit = "_bytes";
  if (key.ends_with(kUnit)) key.resize(key.size() - kUnit.size());
  std::replace(key.begin(), key.end(), '_', ' ');
  return printable(key);
}

std::string title_line(const Json& document) {
  const Json& uptime = at(document, "uptime_s");
  std::string line = fmt::format(
      "tuck {}, process {}, up {}", text_at(document, "version"), count_at(document, "pid"),
      uptime.is_number() ? format_uptime(uptime.get<double>()) : kMissing);
  for (const Json& uri : at(document, "uris")) {
    if (uri.is_string()) line += "\n  at " + printable(uri.get<std::string>());
  }
  return line + "\n";
}

std::string memory_section(const Json& document) {
  const Json& memory = at(document, "memory");
  TextTable table;
  table.add_row(
      {"original", size_at(memory, "original_bytes"), count_at(memory, "pages") + " pages"});
  table.add_row(
      {"compressed", size_at(memory, "compressed_bytes"), ratio_at(memory, "compression_ratio")});
  table.add_row({"resident", size_at(memory, "resident_bytes"), ratio_at(memory, "memory_ratio")});
  const std::optional<uint64_t> limit = number_at(memory, "limit_bytes");
  table.add_row({"limit", limit && *limit > 0 ? format_size_rounded(*limit) : "none"});
  table.add_row({"same-filled", "", count_at(memory, "same_filled_pages") + " pages"});
  table.add_row({"incompressible", "", count_at(memory, "incompressible_pages") + " pages"});
  return "Memory\n" + table.to_string();
}

std::string exports_section(const Json& document) {
  TextTable table;
  table.add_row({"name", "size", "codec", "original", "compressed", "ratio", "same-filled",
                 "incompressible"});
  for (const Json& one : at(document, "exports")) {
    const std::string name = text_at(one, "name");
    table.add_row({name.empty() ? "(default)" : name, size_at(one, "size_bytes"),
                   text_at(one, "codec"), size_at(one, "original_bytes"),
                   size_at(one, "compressed_bytes"), ratio_at(one, "compression_ratio"),
                   count_at(one, "same_filled_pages"), count_at(one, "incompressible_pages")});
  }
  return "Exports\n" + table.to_string();
}

std::string operations_section(const Json& document) {
  const Json& operations = at(document, "operations");
  if (!operations.is_object()) return "";
  TextTable table;
  table.add_row({"operation", "requests", "errors", "bytes", "p50", "p99", "p99.9", "max"});
  for (const auto& [name, one] : operations.items()) {
    table.add_row({label_of(name), count_at(one, "requests"), count_at(one, "errors"),
                   size_at(one, "bytes"), latency_at(one, "latency_p50_ns"),
                   latency_at(one, "latency_p99_ns"), latency_at(one, "latency_p999_ns"),
                   latency_at(one, "latency_max_ns")});
  }
  return "Operations\n" + table.to_string();
}

// Any flat object of figures, by name: what a later server adds is shown too.
std::string figures_section(const char* title, const Json& object) {
  if (!object.is_object() || object.empty()) return "";
  TextTable table;
  for (const auto& [key, member] : object.items()) {
    const bool bytes = key.ends_with("_bytes") && member.is_number_unsigned();
    const std::string figure = bytes ? format_size_rounded(member.get<uint64_t>())
                               : member.is_number_float()
                                   ? fmt::format("{:.2f}", member.get<double>())
                               : member.is_null() ? kMissing
                                                  : printable(member.dump());
    table.add_row({label_of(key), figure});
  }
  return std::string(title) + "\n" + table.to_string();
}

std::string classes_section(const Json& document) {
  const Json& classes = at(document, "classes");
  if (!classes.is_array() || classes.empty()) return "";
  TextTable table;
  std::vector<std::string> header;
  for (const auto& [key, member] : classes.front().items())
    header.push_back(label_of(key));
  table.add_row(header);
  for (const Json& one : classes) {
    std::vector<std::string> row;
    for (const auto& [key, member] : one.items())
      row.push_back(printable(member.dump()));
    table.add_row(std::move(row));
  }
  return "Size classes in use (bytes)\n" + table.to_string();
}

struct RateRow {
  const char* operation;
  const char* label;
};
constexpr std::array<RateRow, 5> kRateRows{{
    {"read", "read"},
    {"write", "write"},
    {"trim", "trim"},
    {"write_zeroes", "write zeroes"},
    {"flush", "flush"},
}};

std::string rate_of(const Json& now, const Json& before, const char* key, double seconds,
                    bool bytes) {
  const std::optional<uint64_t> last = number_at(before, key);
  const std::optional<uint64_t> current = number_at(now, key);
  // A counter that went back belongs to another server at the same path.
  if (!last || !current || *current < *last || seconds <= 0) return kMissing;
  const auto rate =
      static_cast<uint64_t>(std::llround(static_cast<double>(*current - *last) / seconds));
  return bytes ? format_size_rounded(rate) + "/s" : fmt::format("{}/s", rate);
}

}  // namespace

std::string printable(std::string_view raw) {
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    const auto byte = static_cast<unsigned char>(raw[i]);
    const auto next = static_cast<unsigned char>(i + 1 < raw.size() ? raw[i + 1] : 0);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      text += fmt::format("\\x{:02x}", next);
      ++i;
    } else if (byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += raw[i];
    }
  }
  return text;
}

std::string format_duration_ns(uint64_t nanoseconds) {
  constexpr std::array<const char*, 4> kUnits{"ns", "us", "ms", "s"};
  auto amount = static_cast<double>(nanoseconds);
  size_t unit = 0;
  while (amount >= 999.5 && unit + 1 < kUnits.size()) {
    amount /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", amount, decimals, kUnits[unit]);
}

std::string format_uptime(double seconds) {
  const auto whole = static_cast<uint64_t>(std::max(seconds, 0.0));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86'400) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86'400, whole / 3600 % 24);
}

std::string render_stat(const Json& document) {
  std::string text = title_line(document);
  for (const std::string& section :
       {memory_section(document), exports_section(document), operations_section(document),
        figures_section("Connections", at(document, "connections")),
        figures_section("Engine", at(document, "engine")),
        figures_section("Ledger of the pool", at(document, "ledger")), classes_section(document),
        figures_section("Process", at(document, "process"))}) {
    if (!section.empty()) text += "\n" + section;
  }
  return text;
}

std::string render_top(const Json& now, const Json& before, double seconds) {
  std::string text = title_line(now) + "\n" + memory_section(now) + "\n";
  const Json& operations = at(now, "operations");
  const Json& earlier = at(before, "operations");
  TextTable table;
  table.add_row({"operation", "requests", "bytes", "errors in all", "p50", "p99", "max"});
  for (const RateRow& row : kRateRows) {
    const Json& one = at(operations, row.operation);
    const Json& last = at(earlier, row.operation);
    table.add_row({row.label, rate_of(one, last, "requests", seconds, false),
                   rate_of(one, last, "bytes", seconds, true), count_at(one, "errors"),
                   latency_at(one, "latency_p50_ns"), latency_at(one, "latency_p99_ns"),
                   latency_at(one, "latency_max_ns")});
  }
  const Json& connections = at(now, "connections");
  const Json& process = at(now, "process");
  text += "Operations (latency since the start)\n" + table.to_string();
  text += fmt::format("\nConnections {}   process resident {}, swapped {}, major faults {}\n",
                      count_at(connections, "now"), size_at(process, "resident_bytes"),
                      size_at(process, "swapped_bytes"), count_at(process, "major_faults"));
  return text;
}

}  // namespace tuck::cli

// The statistics document as a person reads it. Works from the JSON, which may come from a server
// of another version: what is missing is shown as "-".
#pragma once

#include <string>
#include <string_view>

#include "frontends/cli/stats_json.h"

namespace tuck::cli {

// Everything, for `tuck stat`.
std::string render_stat(const Json& document);

// The most important figures, with rates over the seconds between two documents, for `tuck top`.
// before may be null: the rates are then left out.
std::string render_top(const Json& now, const Json& before, double seconds);

// Text from the server, with its control characters (U+0000 … U+001F, U+007F … U+009F) spelled out:
// a name is whatever bytes its user chose, and nothing of it may steer the terminal.
std::string printable(std::string_view raw);
// 1234 → "1.23 us", 0 → "0 ns"; three significant digits.
std::string format_duration_ns(uint64_t nanoseconds);
// 93 → "1 min 33 s"; the two largest units.
std::string format_uptime(double seconds);

}  // namespace tuck::cli

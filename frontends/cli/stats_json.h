// The document that the control socket answers with; docs/stat.md says what each key means, and a
// test compares the two. Keys are only ever added.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "frontends/cli/process_figures.h"
#include "frontends/cli/serve_options.h"
#include "frontends/cli/swap_protection.h"
#include "frontends/cli/watched_memory.h"
#include "frontends/nbd/nbd.h"

namespace tuck::cli {

// Keys keep the order in which they were written, so that people find their way in the text as
// well.
using Json = nlohmann::ordered_json;

// Everything a running server knows about itself at one moment.
struct ServerFigures {
  std::string version;
  int64_t process_id = 0;
  double uptime_s = 0;
  std::vector<std::string> uris;
  std::vector<ExportSetting> exports;  // in the order of engine.areas
  engine::Stats engine;
  KernelView pool;                          // of the memory that the engine has reserved
  std::optional<nbd::ServerReport> server;  // absent with --stdio
  ProcessFigures process;
  std::vector<Protection> protections;  // as found before the first client; empty: none were asked
  ThreadFlags thread_flags;             // now; where protections were asked for
};

Json to_json(const ServerFigures& figures);

// The answer to one line of a control client, newline included: {"command":"stat"} gets what
// figures returns, anything else {"error":"…"}.
std::string answer_request(std::string_view line, const std::function<Json()>& figures);

}  // namespace tuck::cli

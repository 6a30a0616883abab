#include "bench/frame/machine.h"

#include <fmt/format.h>
#include <lz4.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tuck::bench {

namespace {

// A process or two that run beside us are seen here; the bench's own load is not there yet when
// it begins.
constexpr double kBusyLoad = 0.7;

struct Facts {
  std::string processor = "unknown processor";
  int64_t processors = sysconf(_SC_NPROCESSORS_ONLN);
  double memory_gib = 0;
  std::string kernel;
  std::string compiler = TUCK_BENCH_COMPILER;
  std::string build = TUCK_BENCH_BUILD;
  double load = 0;  // of the last minute, when the facts were first asked for
};

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

const Facts& facts() {
  static const Facts known = [] {
    Facts facts;
    facts.processor = processor_name();
    struct sysinfo system {};
    if (sysinfo(&system) == 0) {
      facts.memory_gib = static_cast<double>(system.totalram) * system.mem_unit / (1u << 30);
    }
    utsname name{};
    if (uname(&name) == 0) facts.kernel = fmt::format("{} {}", name.sysname, name.release);
    if (getloadavg(&facts.load, 1) != 1) facts.load = 0;
    return facts;
  }();
  return known;
}

}  // namespace

std::string machine_text() {
  const Facts& f = facts();
  return fmt::format("{} x {}, {:.0f} GiB, {}; {}, {}; lz4 {}, zstd {}", f.processors, f.processor,
                     f.memory_gib, f.kernel, f.build, f.compiler, LZ4_versionString(),
                     ZSTD_versionString());
}

nlohmann::ordered_json machine_json() {
  const Facts& f = facts();
  return {{"processor", f.processor},   {"processors", f.processors},
          {"memory_gib", f.memory_gib}, {"kernel", f.kernel},
          {"build", f.build},           {"compiler", f.compiler},
          {"lz4", LZ4_versionString()}, {"zstd", ZSTD_versionString()},
          {"load_before", f.load}};
}

std::string machine_warning() {
  std::string text;
  if (std::string_view(TUCK_BENCH_BUILD) == "Debug" || *TUCK_BENCH_SANITIZERS != '\0')
    text = "this is not a release build: its figures say nothing";
  if (facts().load > kBusyLoad) {
    if (!text.empty()) text += "; ";
    text += fmt::format("the machine was busy before (load {:.1f}): wait until it is quiet",
                        facts().load);
  }
  return text;
}

}  // namespace tuck::bench

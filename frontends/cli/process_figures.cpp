#include "frontends/cli/process_figures.h"

#include <sys/resource.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace tuck::cli {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void parse_proc_status(std::istream& status, ProcessFigures& figures) {
  struct Field {
    std::string_view label;
    uint64_t& target;
  };
  const Field fields[] = {
      {"VmRSS:", figures.resident_bytes}, {"VmHWM:", figures.resident_peak_bytes},
      {"VmLck:", figures.locked_bytes},   {"VmSwap:", figures.swapped_bytes},
      {"Threads:", figures.threads},
  };
  std::string line;
  while (std::getline(status, line)) {
    std::istringstream words(line);
    std::string label;
    std::string unit;
    uint64_t number = 0;
    if (!(words >> label >> number)) continue;
    words >> unit;
    for (const Field& field : fields) {
      if (field.label == label) field.target = unit == "kB" ? number * 1024 : number;
    }
  }
}

ProcessFigures read_process_figures() {
  ProcessFigures figures;
  std::ifstream status("/proc/self/status");
  parse_proc_status(status, figures);
  std::ifstream("/proc/self/oom_score_adj") >> figures.oom_score_adj;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    figures.minor_faults = static_cast<uint64_t>(usage.ru_minflt);
    figures.major_faults = static_cast<uint64_t>(usage.ru_majflt);
    figures.user_s = seconds(usage.ru_utime);
    figures.system_s = seconds(usage.ru_stime);
  }
  return figures;
}

}  // namespace tuck::cli

// What the kernel says about this process, for `tuck stat`.
#pragma once

#include <cstdint>
#include <istream>

namespace tuck::cli {

struct ProcessFigures {
  // /proc/self/status, in bytes.
  uint64_t resident_bytes = 0;       // VmRSS
  uint64_t resident_peak_bytes = 0;  // VmHWM
  uint64_t locked_bytes = 0;         // VmLck
  uint64_t swapped_bytes = 0;        // VmSwap: a swap server must keep this at 0
  uint64_t threads = 0;
  // /proc/self/oom_score_adj.
  int64_t oom_score_adj = 0;
  // getrusage(2) of the whole process.
  uint64_t minor_faults = 0;
  uint64_t major_faults = 0;
  double user_s = 0;
  double system_s = 0;
};

// What cannot be read stays 0.
ProcessFigures read_process_figures();

// The part that comes from /proc/self/status.
void parse_proc_status(std::istream& status, ProcessFigures& figures);

}  // namespace tuck::cli

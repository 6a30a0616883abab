// What /proc says about a process: its mappings and the state of its threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/base.h"

namespace tuck::corpus {

struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t populated_pages = 0;  // resident (Rss) and swapped out (Swap)
};

// The process's private mappings whose pages can be swapped, by rising address; those that hold no
// page are left out.
Result<std::vector<Mapping>, Error> swappable_mappings(pid_t pid);

// Whether every thread of the process is stopped (or gone).
bool is_stopped(pid_t pid);

// A sentence for a file of /proc/PID that could not be opened or read.
Error proc_error(pid_t pid, const std::string& file, int number);

}  // namespace tuck::corpus

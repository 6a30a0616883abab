#include "bench/corpus/process_maps.h"

#include <fmt/format.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tuck::corpus {

namespace {

// A mapping as /proc/PID/smaps tells it: a header line, then fields, VmFlags last.
struct SmapsEntry {
  Mapping mapping;
  bool is_private = false;
  bool is_kernels = false;  // [vdso], [vvar], [vsyscall] and their kin
  bool is_special = false;  // hugetlb, or a device's
};

bool parse_header(const std::string& line, SmapsEntry& entry) {
  uint64_t begin = 0;
  uint64_t end = 0;
  char permissions[5] = {};
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, permissions) != 3) {
    return false;
  }
  const bool is_kernels = line.find(" [v") != std::string::npos;
  entry = {.mapping = {.begin = begin, .end = end},
           .is_private = permissions[3] == 'p',
           .is_kernels = is_kernels,
           .is_special = false};
  return true;
}

// ht: hugetlb, never swapped; io and pf: memory of devices, reading it could do things.
bool has_special_flag(std::string_view flags) {
  for (std::string_view flag : {" ht", " io", " pf"}) {
    const size_t at = flags.find(flag);
    if (at != std::string_view::npos && (at + 3 == flags.size() || flags[at + 3] == ' ')) {
      return true;
    }
  }
  return false;
}

void parse_field(const std::string& line, SmapsEntry& entry) {
  uint64_t kib = 0;
  if (std::sscanf(line.c_str(), "Rss: %" SCNu64, &kib) == 1 ||
      std::sscanf(line.c_str(), "Swap: %" SCNu64, &kib) == 1) {
    entry.mapping.populated_pages += kib * 1024 / kPageSize;
  } else if (line.starts_with("VmFlags:")) {
    entry.is_special = has_special_flag(line);
  }
}

// The letter after the parenthesised name, which may itself hold parentheses.
char state_of_thread(const std::filesystem::path& stat_file) {
  std::ifstream in(stat_file);
  std::string line;
  if (!std::getline(in, line)) return 'X';
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 2 < line.size() ? line[name_end + 2] : 'X';
}

}  // namespace

Error proc_error(pid_t pid, const std::string& file, int number) {
  if (number == ENOENT || number == ESRCH) {
    return Error{Errc::invalid, fmt::format("there is no process {}", pid)};
  }
  if (number == EACCES || number == EPERM) {
    return Error{Errc::invalid,
                 fmt::format("no right to read the memory of process {}: try as root (or see "
                             "/proc/sys/kernel/yama/ptrace_scope)",
                             pid)};
  }
  return Error{Errc::invalid,
               fmt::format("cannot read /proc/{}/{}: {}", pid, file, std::strerror(number))};
}

Result<std::vector<Mapping>, Error> swappable_mappings(pid_t pid) {
  errno = 0;
  std::ifstream in(fmt::format("/proc/{}/smaps", pid));
  if (!in) return proc_error(pid, "smaps", errno);
  std::vector<Mapping> mappings;
  SmapsEntry entry;
  std::string line;
  bool any = false;
  while (std::getline(in, line)) {
    if (parse_header(line, entry)) continue;
    parse_field(line, entry);
    if (!line.starts_with("VmFlags:")) continue;
    any = true;
    if (entry.is_private && !entry.is_kernels && !entry.is_special &&
        entry.mapping.populated_pages > 0) {
      mappings.push_back(entry.mapping);
    }
  }
  // The file opens for any process; without the right to read, or for a kernel thread, it is empty.
  if (!any) {
    return Error{Errc::invalid,
                 fmt::format("process {} shows no memory: it has ended, is the kernel's, or needs "
                             "root to be read",
                             pid)};
  }
  return mappings;
}

bool is_stopped(pid_t pid) {
  std::error_code error;
  std::filesystem::directory_iterator tasks(fmt::format("/proc/{}/task", pid), error);
  if (error) return false;
  for (const auto& task : tasks) {
    const char state = state_of_thread(task.path() / "stat");
    if (state != 'T' && state != 't' && state != 'Z' && state != 'X') return false;
  }
  return true;
}

}  // namespace tuck::corpus

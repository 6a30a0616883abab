#include "frontends/nbd/descriptor_limit.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace tuck::nbd {

namespace {

// Where /proc is not to be had: standard streams, libraries, a cold tier.
constexpr uint64_t kAssumedOpen = 64;

uint64_t open_now() {
  // Not std::filesystem, which ends the process where there is no memory.
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return kAssumedOpen;
  uint64_t entries = 0;
  while (readdir(directory) != nullptr)
    ++entries;
  closedir(directory);
  return entries;
}

}  // namespace

Status make_room_for_descriptors(uint64_t more) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{Errc::invalid,
                 fmt::format("cannot tell the limit of open files: {}", std::strerror(errno))};
  }
  const uint64_t needed = open_now() + more;
  if (needed <= limit.rlim_cur) return std::nullopt;
  if (needed > limit.rlim_max) {
    return Error{
        Errc::invalid,
        fmt::format("so many connections need {} open files, and this process may have {}: "
                    "lower the number of connections, or raise the hard limit (ulimit -Hn, "
                    "LimitNOFILE= of a systemd service)",
                    needed, limit.rlim_max)};
  }
  limit.rlim_cur = needed;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{Errc::invalid, fmt::format("cannot raise the limit of open files to {}: {}",
                                            needed, std::strerror(errno))};
  }
  return std::nullopt;
}

}  // namespace tuck::nbd

#include "bench/frame/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace tuck::bench {

namespace {
constexpr int kBarWidth = 30;
}

Progress::Progress(std::string what, bool wanted)
    : what_(std::move(what)), on_(wanted && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (on_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(double share, const std::string& now) {
  if (!on_) return;
  const int filled = static_cast<int>(share * kBarWidth);
  fmt::print(stderr, "\r\033[K{} [{:#<{}}{: <{}}] {:3.0f} % {}", what_, "", filled, "",
             kBarWidth - filled, share * 100, now);
  std::fflush(stderr);
}

}  // namespace tuck::bench

// SIGTERM, SIGINT, SIGHUP and SIGQUIT as something to poll for, instead of something that happens
// in the middle.
#pragma once

#include <string>

#include "base/base.h"
#include "frontends/cli/file_descriptor.h"

namespace tuck::cli {

// The signal that is obeyed whatever it costs.
inline constexpr const char* kStopAtOnce = "SIGQUIT";

class StopSignals {
 public:
  // Blocks the signals in the calling thread and those that it starts from then on, so it comes
  // before the first thread; and ignores SIGPIPE: a client that is gone is an error of its
  // connection.
  static Result<StopSignals, Error> take();

  int fd() const noexcept { return fd_.get(); }
  // Takes one that has come; "" when there is none.
  std::string take_name();

 private:
  explicit StopSignals(FileDescriptor fd) noexcept : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace tuck::cli

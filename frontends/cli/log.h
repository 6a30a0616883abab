// Log lines on standard error, through spdlog's default logger: the layers below write to it too.
#pragma once

#include <string>

#include "base/base.h"

namespace tuck::cli {

// level: error, warning, info or debug. Lines carry the time and the level; when standard error is
// the journal they carry its priority prefix instead ("<6>…"), as the journal knows the time
// itself.
Status start_log(const std::string& level);
// From now on a thread of its own writes the lines, so that no thread that serves ever waits for
// standard error: its reader may be waiting for us (a journal that is swapped out). At most 1024
// lines wait; then the oldest are lost. The thread inherits what the caller has set for itself.
void write_log_behind();
// Writes what waits and ends that thread; lines are written at once again. Nothing to do if there
// is none. False: standard error has taken nothing for two seconds; the thread is still at it, and
// the process had better end by _exit().
[[nodiscard]] bool finish_log();

// "tuck: what" on standard error: the one line a command ends with when it fails.
void print_error(const std::string& what);

}  // namespace tuck::cli

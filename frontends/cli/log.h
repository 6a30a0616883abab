// Log lines on standard error, through spdlog's default logger: the layers below write to it too.
#pragma once

#include <string>

#include "base/base.h"

namespace tuck::cli {

// level: error, warning, info or debug. Lines carry the time and the level; when standard error is
// the journal they carry its priority prefix instead ("<6>…"), as the journal knows the time
// itself.
Status start_log(const std::string& level);

// "tuck: what" on standard error: the one line a command ends with when it fails.
void print_error(const std::string& what);

}  // namespace tuck::cli

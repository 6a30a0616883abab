// `tuck serve`.
#pragma once

#include "frontends/cli/serve_options.h"

namespace tuck::cli {

// Serves until SIGTERM or SIGINT, or with --stdio until the client is done. Returns the exit
// status: 0 stopped as asked, 1 could not serve, 2 wrong options; what was wrong is on standard
// error.
int run_serve(const ServeArguments& arguments);

}  // namespace tuck::cli

// Figures of a server that are all different, for the tests of what is made of them.
#pragma once

#include "frontends/cli/stats_json.h"

namespace tuck::cli::test {

ServerFigures sample_figures();

}  // namespace tuck::cli::test

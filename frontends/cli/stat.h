// `tuck stat` and `tuck top`: ask a running server and show what it says.
#pragma once

#include <cstdint>
#include <string>

namespace tuck::cli {

struct StatArguments {
  std::string control;
  bool json = false;
};

struct TopArguments {
  std::string control;
  uint64_t count = 0;  // screens; 0: until interrupted
};

// Both return the exit status.
int run_stat(const StatArguments& arguments);
int run_top(const TopArguments& arguments);

}  // namespace tuck::cli

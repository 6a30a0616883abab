// How far a run is: a bar on a terminal (standard error), nothing anywhere else.
#pragma once

#include <string>

namespace tuck::bench {

class Progress {
 public:
  Progress(std::string what, bool wanted);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Removes the bar.
  ~Progress();
  // share 0 … 1 is done; what comes now.
  void show(double share, const std::string& now);

 private:
  std::string what_;
  bool on_;
};

}  // namespace tuck::bench

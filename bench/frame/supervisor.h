// A bench changes its machine (zram devices, swap, THP settings) and has to leave it as it was,
// also when it is killed in the middle, with SIGKILL too. Three processes see to that:
//
//   the one that was started   waits, hands signals on as an end, and exits as the worker did
//   worker                     does all the work
//   restorer                   keeps the list of what is to be undone; when the worker is gone,
//                              however, it undoes what is left, the latest first
#pragma once

#include <string>
#include <vector>

#include "base/base.h"

namespace tuck::bench {

// One step back. kind: what undo() in supervisor.cpp knows.
struct Undo {
  enum class Kind : char {
    write_file = 'w',   // value into the file at target
    swap_off = 's',     // target: a device
    remove_zram = 'z',  // target: its number
    remove_tree = 'r',  // target: a folder of ours
  };
  Kind kind{};
  std::string target;
  std::string value;
};

// Called once, at the start of main(), before there are threads. Returns in the worker only, with
// nothing to say, or with an error in the only process there is.
Status supervise();

// Takes back one step when it goes: on every way out of a scope, and through the restorer where the
// worker is killed. Made before the step itself is done. Worker's main thread only.
class Restored {
 public:
  explicit Restored(Undo undo);
  Restored(Restored&& other) noexcept;
  Restored& operator=(Restored&&) = delete;
  ~Restored();
  // Now, and what went wrong with it.
  Status restore();

 private:
  Undo undo_;
  int number_ = 0;  // 0: nothing to do any more
};

}  // namespace tuck::bench

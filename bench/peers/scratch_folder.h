// A folder for what a peer needs while it runs: sockets, pages, disks. In memory (/dev/shm) where
// that is a tmpfs with room, so that no disk is measured by mistake.
#pragma once

#include <cstdint>
#include <string>

#include "bench/frame/supervisor.h"

namespace tuck::bench {

class ScratchFolder {
 public:
  // Outside of memory where /dev/shm has less room than this. Errors: no folder can be made.
  static Result<ScratchFolder, Error> create(uint64_t bytes);

  const std::string& path() const noexcept { return path_; }
  bool in_memory() const noexcept { return in_memory_; }
  // Of a file in it.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  ScratchFolder(std::string path, bool in_memory);

  std::string path_;
  bool in_memory_ = false;
  Restored removed_;
};

}  // namespace tuck::bench

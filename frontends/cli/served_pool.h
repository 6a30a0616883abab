// What `tuck serve` holds: the pool, and a disk for each export. Made in the order memory, engine,
// disks, and torn down in the reverse; a server that stands on the disks ends before this does.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/base.h"
#include "engine/engine.h"
#include "frontends/cli/serve_options.h"
#include "frontends/cli/watched_memory.h"
#include "frontends/nbd/nbd.h"
#include "frontends/vm/vm.h"

namespace tuck::cli {

class ServedPool {
 public:
  // Errors: no memory or address space to be had.
  static Result<std::unique_ptr<ServedPool>, Error> create(const ServeSettings& settings);

  const std::vector<ExportSetting>& exports() const noexcept { return exports_; }
  // The disks as the server takes them; they stay this object's.
  std::vector<nbd::Export> nbd_exports() const;
  engine::Stats stats() const { return engine_->stats(); }
  // Where the pool's memory is, populated or not.
  std::vector<AddressRange> memory_ranges() const { return memory_.ranges(); }
  // See WatchedMemory.
  void take_only_what_is_free(FreeMemory free) noexcept {
    memory_.take_only_what_is_free(std::move(free));
  }
  KernelView kernel_view() const { return memory_.kernel_view(); }

 private:
  explicit ServedPool(std::vector<ExportSetting> exports) : exports_(std::move(exports)) {}

  const std::vector<ExportSetting> exports_;
  WatchedMemory memory_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<std::unique_ptr<vm::SwapArea>> disks_;  // in the order of exports_
};

}  // namespace tuck::cli

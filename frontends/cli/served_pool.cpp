#include "frontends/cli/served_pool.h"

#include <algorithm>
#include <utility>

namespace tuck::cli {

Result<std::unique_ptr<ServedPool>, Error> ServedPool::create(const ServeSettings& settings) {
  std::unique_ptr<ServedPool> pool(new ServedPool(settings.exports));
  engine::EngineOptions options;
  options.memory = &pool->memory_;
  options.memory_limit_bytes = settings.memory_limit_bytes;
  options.reserve_bytes = settings.reserve_bytes;
  // Where the pool is the swap of its own machine, a store neither asks the system for memory nor
  // waits for somebody who does.
  const bool strict = settings.protection == ProtectionMode::strict;
  if (strict) options.empty_reserve = engine::EmptyReserve::refuse;
  auto engine = engine::Engine::create(options);
  if (!engine) return engine.error();
  pool->engine_ = std::move(*engine);
  for (const ExportSetting& one : pool->exports_) {
    auto area = pool->engine_->add_area({.name = one.name,
                                         .slots = one.slots(),
                                         .codec = settings.codec,
                                         .populate_table = strict});
    if (!area) return area.error();
    pool->disks_.push_back(std::make_unique<vm::SwapArea>(*pool->engine_, *area, one.size_bytes));
  }
  return pool;
}

std::vector<nbd::Export> ServedPool::nbd_exports() const {
  std::vector<nbd::Export> exports;
  for (size_t i = 0; i < exports_.size(); ++i) {
    nbd::Export one;
    one.name = exports_[i].name;
    one.description = "compressed memory";
    one.area = disks_[i].get();
    exports.push_back(std::move(one));
  }
  return exports;
}

}  // namespace tuck::cli

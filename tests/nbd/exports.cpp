#include "tests/nbd/exports.h"

#include <cstdio>
#include <cstdlib>

namespace tuck::test {

namespace {

template <class T>
T expect(Result<T, Error> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "cannot set the exports up: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

}  // namespace

Exports::Exports() {
  engine::EngineOptions options;
  options.background_thread = false;
  engine_ = expect(engine::Engine::create(options));
  const auto add = [this](const char* name, uint64_t bytes) {
    engine::AreaOptions area;
    area.name = name;
    area.slots = (bytes + kPageSize - 1) / kPageSize;
    return std::make_unique<vm::SwapArea>(*engine_, expect(engine_->add_area(area)), bytes);
  };
  disk_ = add("disk", kDiskBytes);
  read_only_ = add("read-only", kReadOnlyBytes);
  pair_ = {{"disk", "compressed memory", disk_.get(), false},
           {"read-only", "", read_only_.get(), true}};
}

Exports& Exports::instance() {
  static Exports exports;
  return exports;
}

const std::vector<nbd::Export>& Exports::pair() {
  return instance().pair_;
}

std::vector<nbd::Export> Exports::many(size_t count, size_t name_bytes,
                                       const std::string& description) {
  std::vector<nbd::Export> exports;
  for (size_t i = 0; i < count; ++i) {
    std::string name = std::to_string(i);
    if (name.size() < name_bytes) name.resize(name_bytes, '=');
    exports.push_back({std::move(name), description, instance().disk_.get(), false});
  }
  return exports;
}

}  // namespace tuck::test

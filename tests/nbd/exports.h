// Two disks on a real engine, for tests that need exports but store nothing in them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "frontends/nbd/nbd.h"

namespace tuck::test {

inline constexpr uint64_t kDiskBytes = 4u << 20;
inline constexpr uint64_t kReadOnlyBytes = (1u << 20) + 100;

class Exports {
 public:
  // "disk" (the default) and "read-only", of the two sizes above.
  static const std::vector<nbd::Export>& pair();
  // count exports of kDiskBytes with these descriptions; names are "0", "1", … padded with '=' to
  // name_bytes.
  static std::vector<nbd::Export> many(size_t count, size_t name_bytes,
                                       const std::string& description);

 private:
  Exports();
  static Exports& instance();
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<vm::SwapArea> disk_;
  std::unique_ptr<vm::SwapArea> read_only_;
  std::vector<nbd::Export> pair_;
};

}  // namespace tuck::test

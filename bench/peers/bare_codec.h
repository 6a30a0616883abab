// The codecs alone, as their users call them: a context that is kept, one page a call, output into
// memory that is there. What the engine costs is measured against this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/base.h"

namespace tuck::bench {

class BareCodec {
 public:
  // The settings that the engine has too: lz4 with acceleration 1, zstd with a level.
  static std::unique_ptr<BareCodec> lz4();
  static std::unique_ptr<BareCodec> zstd(int level);
  virtual ~BareCodec() = default;

  // The compressed length, or 0 if it is more than room. One thread at a time.
  virtual uint32_t compress(const std::byte* in, uint32_t bytes, std::byte* out,
                            uint32_t room) noexcept = 0;
  // Whether it decoded to exactly so many bytes.
  virtual bool decompress(const std::byte* in, uint32_t length, std::byte* out,
                          uint32_t bytes) noexcept = 0;
};

}  // namespace tuck::bench

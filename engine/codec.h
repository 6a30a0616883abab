// Codecs and their contexts. Contexts are made when an area asks for a codec, and claimed for the
// length of one call; compressing and decompressing allocate nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/base.h"
#include "engine/codec_setting.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace tuck::engine {

// The largest unit that is compressed at once: 64 KiB. Today's units are single pages.
inline constexpr uint32_t kUnitBytesMax = 64u << 10;
// Scratch space for a unit that grows under the codec.
inline constexpr uint32_t kScratchBytes = kUnitBytesMax + 1024;

// What one call needs. Used by its claimer alone.
struct CodecContext {
  std::unique_ptr<std::byte[]> lz4_state;
  std::unique_ptr<std::byte[]> scratch;  // kScratchBytes
  std::unique_ptr<std::byte[]> compress_space;
  std::unique_ptr<std::byte[]> decompress_space;
  size_t compress_space_bytes = 0;
  ZSTD_CCtx_s* compressor = nullptr;  // lives in compress_space
  ZSTD_DCtx_s* decompressor = nullptr;
  int compressor_level = 0;  // that its parameters are set for; 0: none
};

using CodecClaim = ClaimArray<CodecContext>::Claim;

class Codecs {
 public:
  // Calls that compress or decompress at one time; more wait for a context.
  static constexpr uint32_t kContexts = 32;

  static Result<std::unique_ptr<Codecs>, Error> create();

  // Makes every context able to compress with this setting. Waits for each context in turn.
  // Errors: no_space; contexts that were changed stay able to do what they could before.
  Status prepare(CodecSetting setting);

  CodecClaim claim() noexcept { return contexts_.claim(); }

  // Compresses bytes of in towards out. Returns the length, or 0 if it is more than room.
  // pre: the setting was prepared.
  static uint32_t compress(CodecContext& context, CodecSetting setting, const std::byte* in,
                           uint32_t bytes, std::byte* out, uint32_t room) noexcept;
  // Decompresses exactly bytes into out; false if the input does not decode to that.
  bool decompress(CodecKind kind, const std::byte* in, uint32_t length, std::byte* out,
                  uint32_t bytes) noexcept;

 private:
  Codecs() : contexts_(kContexts) {}

  ClaimArray<CodecContext> contexts_;
};

}  // namespace tuck::engine

// The zstd functions that work in memory of ours are in its "static" section: they keep their names
// and meaning within the versions that Debian 12 ships, and there is no other way to keep zstd from
// allocating.
#define ZSTD_STATIC_LINKING_ONLY
#include "engine/codec.h"

#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <new>

namespace tuck::engine {
namespace {

std::unique_ptr<std::byte[]> buffer(size_t bytes) {
  return std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[bytes]);
}

Error no_memory() {
  return Error{Errc::no_space, "no memory for the codecs' contexts: free some, or use lz4"};
}

bool set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  return ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0;
}

// Frames without magic number, size and checksum: the entry knows the codec and the length, and 6
// to 9 bytes a page are half a percent.
bool set_level(ZSTD_CCtx* context, int level, const ZSTD_compressionParameters& parameters) {
  return set(context, ZSTD_c_compressionLevel, level) &&
         set(context, ZSTD_c_windowLog, static_cast<int>(parameters.windowLog)) &&
         set(context, ZSTD_c_hashLog, static_cast<int>(parameters.hashLog)) &&
         set(context, ZSTD_c_chainLog, static_cast<int>(parameters.chainLog)) &&
         set(context, ZSTD_c_searchLog, static_cast<int>(parameters.searchLog)) &&
         set(context, ZSTD_c_minMatch, static_cast<int>(parameters.minMatch)) &&
         set(context, ZSTD_c_targetLength, static_cast<int>(parameters.targetLength)) &&
         set(context, ZSTD_c_strategy, static_cast<int>(parameters.strategy)) &&
         set(context, ZSTD_c_contentSizeFlag, 0) && set(context, ZSTD_c_checksumFlag, 0) &&
         set(context, ZSTD_c_dictIDFlag, 0) && set(context, ZSTD_c_format, ZSTD_f_zstd1_magicless);
}

// Of one page: larger units get their own when they come.
ZSTD_compressionParameters parameters_of(int level) {
  return ZSTD_getCParams(level, kPageSize, 0);
}

}  // namespace

Result<std::unique_ptr<Codecs>, Error> Codecs::create() {
  std::unique_ptr<Codecs> codecs(new Codecs);
  const size_t decompress_bytes = ZSTD_estimateDCtxSize();
  for (uint32_t i = 0; i < kContexts; ++i) {
    const auto context = codecs->contexts_.claim_at(i);
    context->lz4_state = buffer(static_cast<size_t>(LZ4_sizeofState()));
    context->scratch = buffer(kScratchBytes);
    context->decompress_space = buffer(decompress_bytes);
    if (!context->lz4_state || !context->scratch || !context->decompress_space) return no_memory();
    context->decompressor = ZSTD_initStaticDCtx(context->decompress_space.get(), decompress_bytes);
    if (context->decompressor == nullptr ||
        ZSTD_isError(ZSTD_DCtx_setParameter(context->decompressor, ZSTD_d_format,
                                            ZSTD_f_zstd1_magicless)) != 0) {
      return no_memory();
    }
  }
  return codecs;
}

Status Codecs::prepare(CodecSetting setting) {
  if (setting.kind != CodecKind::zstd) return {};
  const size_t bytes = ZSTD_estimateCCtxSize_usingCParams(parameters_of(setting.level));
  for (uint32_t i = 0; i < kContexts; ++i) {
    const auto context = contexts_.claim_at(i);
    if (context->compress_space_bytes >= bytes) continue;
    auto space = buffer(bytes);
    if (!space) return no_memory();
    ZSTD_CCtx* const compressor = ZSTD_initStaticCCtx(space.get(), bytes);
    if (compressor == nullptr) return no_memory();
    context->compress_space = std::move(space);
    context->compress_space_bytes = bytes;
    context->compressor = compressor;
    context->compressor_level = 0;
    TUCK_SYNC_POINT("engine.codecs.context_made");
  }
  return {};
}

uint32_t Codecs::compress(CodecContext& context, CodecSetting setting, const std::byte* in,
                          uint32_t bytes, std::byte* out, uint32_t room) noexcept {
  switch (setting.kind) {
    case CodecKind::none:
      return 0;
    case CodecKind::lz4: {
      const int length = LZ4_compress_fast_extState(
          context.lz4_state.get(), reinterpret_cast<const char*>(in), reinterpret_cast<char*>(out),
          static_cast<int>(bytes), static_cast<int>(room), setting.level);
      return static_cast<uint32_t>(length);
    }
    case CodecKind::zstd: {
      if (context.compressor_level != setting.level) {
        // A page that did not fit left its frame unfinished; parameters are taken between frames
        // only.
        ZSTD_CCtx_reset(context.compressor, ZSTD_reset_session_only);
        TUCK_CHECK(set_level(context.compressor, setting.level, parameters_of(setting.level)));
        context.compressor_level = setting.level;
      }
      const size_t length = ZSTD_compress2(context.compressor, out, room, in, bytes);
      return ZSTD_isError(length) != 0 ? 0 : static_cast<uint32_t>(length);
    }
  }
  return 0;
}

bool Codecs::decompress(CodecKind kind, const std::byte* in, uint32_t length, std::byte* out,
                        uint32_t bytes) noexcept {
  switch (kind) {
    case CodecKind::none:
      if (length != bytes) return false;
      std::memcpy(out, in, bytes);
      return true;
    case CodecKind::lz4:
      return LZ4_decompress_safe(reinterpret_cast<const char*>(in), reinterpret_cast<char*>(out),
                                 static_cast<int>(length),
                                 static_cast<int>(bytes)) == static_cast<int>(bytes);
    case CodecKind::zstd: {
      const auto context = contexts_.claim();
      return ZSTD_decompressDCtx(context->decompressor, out, bytes, in, length) == bytes;
    }
  }
  return false;
}

}  // namespace tuck::engine

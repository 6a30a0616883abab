#include "bench/peers/bare_codec.h"

#include <lz4.h>
#include <zstd.h>

#include <vector>

namespace tuck::bench {

namespace {

class Lz4 final : public BareCodec {
 public:
  uint32_t compress(const std::byte* in, uint32_t bytes, std::byte* out,
                    uint32_t room) noexcept override {
    return static_cast<uint32_t>(LZ4_compress_fast_extState(
        state_.data(), reinterpret_cast<const char*>(in), reinterpret_cast<char*>(out),
        static_cast<int>(bytes), static_cast<int>(room), 1));
  }
  bool decompress(const std::byte* in, uint32_t length, std::byte* out,
                  uint32_t bytes) noexcept override {
    return LZ4_decompress_safe(reinterpret_cast<const char*>(in), reinterpret_cast<char*>(out),
                               static_cast<int>(length),
                               static_cast<int>(bytes)) == static_cast<int>(bytes);
  }

 private:
  std::vector<uint64_t> state_ =
      std::vector<uint64_t>(static_cast<size_t>(LZ4_sizeofState() + 7) / sizeof(uint64_t));
};

class Zstd final : public BareCodec {
 public:
  explicit Zstd(int level) : compressor_(ZSTD_createCCtx()), decompressor_(ZSTD_createDCtx()) {
    TUCK_CHECK(compressor_ != nullptr && decompressor_ != nullptr);
    ZSTD_CCtx_setParameter(compressor_, ZSTD_c_compressionLevel, level);
  }
  ~Zstd() override {
    ZSTD_freeCCtx(compressor_);
    ZSTD_freeDCtx(decompressor_);
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  uint32_t compress(const std::byte* in, uint32_t bytes, std::byte* out,
                    uint32_t room) noexcept override {
    const size_t length = ZSTD_compress2(compressor_, out, room, in, bytes);
    return ZSTD_isError(length) != 0 ? 0 : static_cast<uint32_t>(length);
  }
  bool decompress(const std::byte* in, uint32_t length, std::byte* out,
                  uint32_t bytes) noexcept override {
    return ZSTD_decompressDCtx(decompressor_, out, bytes, in, length) == bytes;
  }

 private:
  ZSTD_CCtx* compressor_;
  ZSTD_DCtx* decompressor_;
};

}  // namespace

std::unique_ptr<BareCodec> BareCodec::lz4() {
  return std::make_unique<Lz4>();
}

std::unique_ptr<BareCodec> BareCodec::zstd(int level) {
  return std::make_unique<Zstd>(level);
}

}  // namespace tuck::bench

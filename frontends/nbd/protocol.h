// The NBD protocol's numbers, and big-endian loads and stores. Source: the NBD project's proto.md.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tuck::nbd {

// --- Big-endian integers at any address ------------------------------------------------------

namespace detail {
// byteswap is its own inverse, and the wire's order is fixed: one function for both directions.
template <class T>
constexpr T swap_to_big(T value) noexcept {
  if constexpr (std::endian::native == std::endian::big) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}
template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return swap_to_big(value);
}
template <class T>
void store(std::byte* at, T value) noexcept {
  value = swap_to_big(value);
  std::memcpy(at, &value, sizeof value);
}
}  // namespace detail

inline uint16_t load16(const std::byte* at) noexcept {
  return detail::load<uint16_t>(at);
}
inline uint32_t load32(const std::byte* at) noexcept {
  return detail::load<uint32_t>(at);
}
inline uint64_t load64(const std::byte* at) noexcept {
  return detail::load<uint64_t>(at);
}
inline void store16(std::byte* at, uint16_t value) noexcept {
  detail::store(at, value);
}
inline void store32(std::byte* at, uint32_t value) noexcept {
  detail::store(at, value);
}
inline void store64(std::byte* at, uint64_t value) noexcept {
  detail::store(at, value);
}

// --- Sizes and limits ------------------------------------------------------------------------

inline constexpr size_t kGreetingBytes = 18;
inline constexpr size_t kClientFlagsBytes = 4;
inline constexpr size_t kOptionHeaderBytes = 16;
inline constexpr size_t kOptionReplyHeaderBytes = 20;
inline constexpr size_t kExportNameZeroes = 124;
inline constexpr size_t kRequestBytes = 28;
inline constexpr size_t kSimpleReplyBytes = 16;
inline constexpr size_t kChunkHeaderBytes = 20;

// The longest string that the protocol allows: export names, descriptions, queries, messages.
inline constexpr size_t kStringBytesMax = 4096;
// The longest payload of a READ or a WRITE; what clients may count on without asking.
inline constexpr uint32_t kPayloadBytesMax = 32u << 20;
inline constexpr uint32_t kBlockBytesMin = 1;
inline constexpr uint32_t kBlockBytesPreferred = 4096;

// --- Handshake -------------------------------------------------------------------------------

inline constexpr uint64_t kGreetingMagic = 0x4e42444d41474943;  // "NBDMAGIC"
inline constexpr uint64_t kOptionMagic = 0x49484156454f5054;    // "IHAVEOPT"
inline constexpr uint64_t kOptionReplyMagic = 0x0003e889045565a9;

inline constexpr uint16_t kHandshakeFixedNewstyle = 1u << 0;
inline constexpr uint16_t kHandshakeNoZeroes = 1u << 1;
inline constexpr uint32_t kClientFixedNewstyle = 1u << 0;
inline constexpr uint32_t kClientNoZeroes = 1u << 1;

enum class Option : uint32_t {
  export_name = 1,
  abort = 2,
  list = 3,
  peek_export = 4,
  start_tls = 5,
  info = 6,
  go = 7,
  structured_reply = 8,
  list_meta_context = 9,
  set_meta_context = 10,
  extended_headers = 11,
};

inline constexpr uint32_t kReplyErrorBit = 1u << 31;

enum class OptionReply : uint32_t {
  ack = 1,
  server = 2,
  info = 3,
  meta_context = 4,
  error_unsupported = kReplyErrorBit | 1,
  error_policy = kReplyErrorBit | 2,
  error_invalid = kReplyErrorBit | 3,
  error_platform = kReplyErrorBit | 4,
  error_tls_required = kReplyErrorBit | 5,
  error_unknown = kReplyErrorBit | 6,
  error_shutdown = kReplyErrorBit | 7,
  error_block_size_required = kReplyErrorBit | 8,
  error_too_big = kReplyErrorBit | 9,
  error_extended_headers_required = kReplyErrorBit | 10,
};

enum class InfoType : uint16_t { export_ = 0, name = 1, description = 2, block_size = 3 };

// --- Transmission flags ----------------------------------------------------------------------

inline constexpr uint16_t kFlagHasFlags = 1u << 0;
inline constexpr uint16_t kFlagReadOnly = 1u << 1;
inline constexpr uint16_t kFlagSendFlush = 1u << 2;
inline constexpr uint16_t kFlagSendFua = 1u << 3;
inline constexpr uint16_t kFlagRotational = 1u << 4;
inline constexpr uint16_t kFlagSendTrim = 1u << 5;
inline constexpr uint16_t kFlagSendWriteZeroes = 1u << 6;
inline constexpr uint16_t kFlagSendDf = 1u << 7;
inline constexpr uint16_t kFlagCanMultiConn = 1u << 8;
inline constexpr uint16_t kFlagSendResize = 1u << 9;
inline constexpr uint16_t kFlagSendCache = 1u << 10;
inline constexpr uint16_t kFlagSendFastZero = 1u << 11;

// --- Requests and replies --------------------------------------------------------------------

inline constexpr uint32_t kRequestMagic = 0x25609513;
inline constexpr uint32_t kSimpleReplyMagic = 0x67446698;
inline constexpr uint32_t kChunkMagic = 0x668e33ef;

// A request's type; a value outside the enumerators is a command that nobody knows.
enum class Command : uint16_t {
  read = 0,
  write = 1,
  disconnect = 2,
  flush = 3,
  trim = 4,
  cache = 5,
  write_zeroes = 6,
  block_status = 7,
};

inline constexpr uint16_t kCommandFua = 1u << 0;
inline constexpr uint16_t kCommandNoHole = 1u << 1;
inline constexpr uint16_t kCommandDf = 1u << 2;
inline constexpr uint16_t kCommandReqOne = 1u << 3;
inline constexpr uint16_t kCommandFastZero = 1u << 4;
inline constexpr uint16_t kCommandPayloadLength = 1u << 5;

inline constexpr uint16_t kChunkDone = 1u << 0;

enum class ChunkType : uint16_t {
  none = 0,
  offset_data = 1,
  offset_hole = 2,
  block_status = 5,
  error = 0x8001,
  error_offset = 0x8002,
};

// The only error numbers that may travel.
enum class WireError : uint32_t {
  none = 0,
  permission = 1,      // EPERM: a write to a read-only export
  io = 5,              // EIO
  no_memory = 12,      // ENOMEM
  invalid = 22,        // EINVAL
  no_space = 28,       // ENOSPC
  overflow = 75,       // EOVERFLOW
  not_supported = 95,  // ENOTSUP: only for FAST_ZERO
  shutdown = 108,      // ESHUTDOWN
};

// --- Block status ----------------------------------------------------------------------------

inline constexpr std::string_view kBaseNamespace = "base:";
inline constexpr std::string_view kBaseAllocationName = "base:allocation";
// The one context's id in BLOCK_STATUS replies of every connection.
inline constexpr uint32_t kBaseAllocationId = 1;
inline constexpr uint32_t kStateHole = 1u << 0;
inline constexpr uint32_t kStateZero = 1u << 1;

}  // namespace tuck::nbd

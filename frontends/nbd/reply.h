// Replies in a caller's memory. Each function writes one header or chunk at the start of out, which
// must have room for it, and returns the bytes written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "frontends/nbd/nbd.h"
#include "frontends/nbd/protocol.h"

namespace tuck::nbd {

inline constexpr size_t kDataChunkHeaderBytes = kChunkHeaderBytes + 8;
inline constexpr size_t kHoleChunkBytes = kChunkHeaderBytes + 12;
inline constexpr size_t kErrorChunkBytes = kChunkHeaderBytes + 6;
constexpr size_t block_status_bytes(size_t extents) noexcept {
  return kChunkHeaderBytes + 4 + 8 * extents;
}

// The header of a simple reply; a successful READ's data follows. Never for a READ where structured
// replies were agreed on.
size_t put_simple_reply(std::span<std::byte> out, uint64_t cookie, WireError error) noexcept;

// Structured replies. Chunks that end their reply say so with done; the others always do.
// NONE: success without content (a READ of length 0; the end of content chunks without done).
size_t put_none_chunk(std::span<std::byte> out, uint64_t cookie) noexcept;
// OFFSET_DATA's first kDataChunkHeaderBytes; data_bytes (at least 1) of data follow.
size_t put_data_chunk_header(std::span<std::byte> out, uint64_t cookie, uint64_t offset,
                             uint32_t data_bytes, bool done) noexcept;
// OFFSET_HOLE: hole_bytes (at least 1) of zeroes that need not travel.
size_t put_hole_chunk(std::span<std::byte> out, uint64_t cookie, uint64_t offset,
                      uint32_t hole_bytes, bool done) noexcept;
// ERROR, without a message for people: error is not none.
size_t put_error_chunk(std::span<std::byte> out, uint64_t cookie, WireError error) noexcept;
// BLOCK_STATUS of base:allocation: the extents, which are consecutive from the request's offset, as
// far as they lie within length (a request's, at least 1), only the first with only_one (REQ_ONE),
// and as far as out has room for them (block_status_bytes(1) at least).
size_t put_block_status_chunk(std::span<std::byte> out, uint64_t cookie,
                              std::span<const vm::ByteExtent> extents, uint32_t length,
                              bool only_one) noexcept;

// base:allocation's flags.
uint32_t allocation_flags(vm::ExtentKind kind) noexcept;

// What a client is told about an error of the swap area. Errc::pending is not one: wait and go on.
WireError wire_error_of(Errc code) noexcept;

// The reply that says error, or success without content, in the form that the connection agreed on:
// an ERROR or NONE chunk where that is structured replies, a simple reply otherwise. At most
// kErrorChunkBytes.
size_t put_status_reply(std::span<std::byte> out, uint64_t cookie, WireError error,
                        bool structured) noexcept;

}  // namespace tuck::nbd

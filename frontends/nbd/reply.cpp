#include "frontends/nbd/reply.h"

#include <algorithm>

#include "base/base.h"
#include "frontends/nbd/output_buffer.h"

namespace tuck::nbd {

namespace {

void put_chunk_header(OutputBuffer& out, ChunkType type, uint64_t cookie, bool done,
                      uint32_t payload_bytes) noexcept {
  out.put32(kChunkMagic);
  out.put16(done ? kChunkDone : uint16_t{0});
  out.put16(static_cast<uint16_t>(type));
  out.put64(cookie);
  out.put32(payload_bytes);
}

}  // namespace

size_t put_simple_reply(std::span<std::byte> out, uint64_t cookie, WireError error) noexcept {
  OutputBuffer buffer(out);
  buffer.put32(kSimpleReplyMagic);
  buffer.put32(static_cast<uint32_t>(error));
  buffer.put64(cookie);
  return buffer.size;
}

size_t put_none_chunk(std::span<std::byte> out, uint64_t cookie) noexcept {
  OutputBuffer buffer(out);
  put_chunk_header(buffer, ChunkType::none, cookie, true, 0);
  return buffer.size;
}

size_t put_data_chunk_header(std::span<std::byte> out, uint64_t cookie, uint64_t offset,
                             uint32_t data_bytes, bool done) noexcept {
  TUCK_CHECK(data_bytes > 0 && data_bytes <= kPayloadBytesMax);
  OutputBuffer buffer(out);
  put_chunk_header(buffer, ChunkType::offset_data, cookie, done, 8 + data_bytes);
  buffer.put64(offset);
  return buffer.size;
}

size_t put_hole_chunk(std::span<std::byte> out, uint64_t cookie, uint64_t offset,
                      uint32_t hole_bytes, bool done) noexcept {
  TUCK_CHECK(hole_bytes > 0);
  OutputBuffer buffer(out);
  put_chunk_header(buffer, ChunkType::offset_hole, cookie, done, 12);
  buffer.put64(offset);
  buffer.put32(hole_bytes);
  return buffer.size;
}

size_t put_error_chunk(std::span<std::byte> out, uint64_t cookie, WireError error) noexcept {
  TUCK_CHECK(error != WireError::none);
  OutputBuffer buffer(out);
  put_chunk_header(buffer, ChunkType::error, cookie, true, 6);
  buffer.put32(static_cast<uint32_t>(error));
  buffer.put16(0);  // bytes of message
  return buffer.size;
}

size_t put_block_status_chunk(std::span<std::byte> out, uint64_t cookie,
                              std::span<const vm::ByteExtent> extents, uint32_t length,
                              bool only_one) noexcept {
  TUCK_CHECK(length > 0 && out.size() >= block_status_bytes(1));
  // The header comes last, when the number of extents is known.
  OutputBuffer buffer(out);
  std::byte* const header = buffer.extend(kChunkHeaderBytes);
  buffer.put32(kBaseAllocationId);
  uint32_t left = length;
  for (const vm::ByteExtent& extent : extents) {
    if (left == 0 || buffer.room() < 8) break;
    if (extent.bytes == 0) continue;
    // Cut to the request, so that no length needs more than its 32 bits.
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(extent.bytes, left));
    buffer.put32(bytes);
    buffer.put32(allocation_flags(extent.kind));
    left -= bytes;
    if (only_one) break;
  }
  // A reply without an extent is not a reply.
  TUCK_CHECK(left < length);
  OutputBuffer at_header(header, kChunkHeaderBytes);
  put_chunk_header(at_header, ChunkType::block_status, cookie, true,
                   static_cast<uint32_t>(buffer.size - kChunkHeaderBytes));
  return buffer.size;
}

uint32_t allocation_flags(vm::ExtentKind kind) noexcept {
  switch (kind) {
    case vm::ExtentKind::hole:
      return kStateHole | kStateZero;
    case vm::ExtentKind::zero:
      return kStateZero;
    // Overwriting it may need more memory than it has now. HOLE would say so, but clients take HOLE
    // without ZERO for something not worth reading; a clear bit also means "not known".
    case vm::ExtentKind::data:
      return 0;
  }
  return 0;
}

WireError wire_error_of(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return WireError::none;
    case Errc::no_space:
      return WireError::no_space;
    case Errc::out_of_range:
    case Errc::invalid:
      return WireError::invalid;
    case Errc::shutting_down:
      return WireError::shutdown;
    case Errc::pending:
    case Errc::changed:
    case Errc::corrupt:
      return WireError::io;
  }
  return WireError::io;
}

size_t put_status_reply(std::span<std::byte> out, uint64_t cookie, WireError error,
                        bool structured) noexcept {
  if (!structured) return put_simple_reply(out, cookie, error);
  if (error == WireError::none) return put_none_chunk(out, cookie);
  return put_error_chunk(out, cookie, error);
}

}  // namespace tuck::nbd

// READ and BLOCK_STATUS: the requests whose replies carry content.
#include <algorithm>

#include "frontends/nbd/reply.h"
#include "frontends/nbd/transmission.h"

namespace tuck::nbd {

namespace {

// BLOCK_STATUS reads one entry a page: this many cost about as much as compressing one page.
constexpr uint64_t kLookedAtPagesAWorkPage = 256;
constexpr uint64_t kLookBytes = uint64_t{kLookedAtPagesAWorkPage} * kWorkPagesMax * kPageSize;

}  // namespace

size_t Transmission::read_header_bytes() const noexcept {
  return negotiated_.structured_replies ? kDataChunkHeaderBytes : kSimpleReplyBytes;
}

void Transmission::put_read_header(std::span<std::byte> out) const noexcept {
  if (negotiated_.structured_replies) {
    put_data_chunk_header(out, request_.cookie, request_.offset, request_.length, true);
  } else {
    put_simple_reply(out, request_.cookie, WireError::none);
  }
}

// The header is written when all data is there: an error on the way becomes an error reply.
Transmission::Step Transmission::read_whole(SendBuffers& out) noexcept {
  const size_t header_bytes = read_header_bytes();
  if (whole_reply_.empty()) {
    whole_reply_ = out.reserve(header_bytes + request_.length);
    if (whole_reply_.empty()) return Progress::needs_room;
  }
  if (left() != 0) {
    if (!can_afford(left())) return Progress::yields;
    const uint64_t bytes = affordable(left());
    const vm::ByteResult result = area_.read(
        position(), whole_reply_.subspan(header_bytes + done_, static_cast<size_t>(bytes)),
        ticket());
    spend(pages_of(bytes));
    if (!took(result)) return fail_to(Stage::reply, result.code);
    return std::nullopt;
  }
  put_read_header(whole_reply_);
  out.commit(header_bytes + request_.length);
  finish();
  return std::nullopt;
}

// One reply that is longer than the buffers: simple, or asked for in one chunk.
Transmission::Step Transmission::read_stream(SendBuffers& out) noexcept {
  if (!header_sent_) {
    const auto room = out.reserve(read_header_bytes());
    if (room.empty()) return Progress::needs_room;
    put_read_header(room);
    out.commit(read_header_bytes());
    header_sent_ = true;
  }
  if (left() == 0) {
    finish();
    return std::nullopt;
  }
  const auto room = out.reserve(static_cast<size_t>(std::min(left(), kPieceBytes)));
  if (room.empty()) return Progress::needs_room;
  const uint64_t wanted = std::min<uint64_t>(left(), room.size());
  if (!can_afford(wanted)) return Progress::yields;
  const uint64_t bytes = affordable(wanted);
  const vm::ByteResult result =
      area_.read(position(), room.first(static_cast<size_t>(bytes)), ticket());
  spend(pages_of(bytes));
  out.commit(static_cast<size_t>(result.bytes_done));
  if (took(result)) return std::nullopt;
  if (result.code == Errc::pending) return fail_to(Stage::reply, result.code);
  error_ = wire_error_of(result.code);
  finish();
  return broken("the rest of a reply already under way could not be read");
}

Transmission::Step Transmission::read_chunks(SendBuffers& out) noexcept {
  if (error_ != WireError::none) return error_chunk(out);
  if (work_left_ == 0) return Progress::yields;
  vm::ByteExtent extent;
  const uint64_t look_at = std::min<uint64_t>(left(), kWholeReadBytesMax);
  if (area_.status(position(), look_at, {&extent, 1}) == 0)
    extent = {look_at, vm::ExtentKind::data};
  const uint64_t bytes = std::min(extent.bytes, look_at);
  if (extent.kind == vm::ExtentKind::data) return data_chunk(out, bytes);
  return hole_chunk(out, static_cast<uint32_t>(bytes));
}

Transmission::Step Transmission::data_chunk(SendBuffers& out, uint64_t data_bytes) noexcept {
  const size_t least = static_cast<size_t>(std::min(data_bytes, kPieceBytes));
  const auto room = out.reserve(kDataChunkHeaderBytes + least);
  if (room.empty()) return Progress::needs_room;
  const uint64_t wanted = std::min<uint64_t>(data_bytes, room.size() - kDataChunkHeaderBytes);
  if (!can_afford(wanted)) return Progress::yields;
  const uint64_t bytes = affordable(wanted);
  const uint64_t offset = position();
  const vm::ByteResult result =
      area_.read(offset, room.subspan(kDataChunkHeaderBytes, static_cast<size_t>(bytes)), ticket());
  spend(pages_of(bytes));
  const bool ok = took(result);
  if (result.bytes_done != 0) {
    put_data_chunk_header(room, request_.cookie, offset, static_cast<uint32_t>(result.bytes_done),
                          left() == 0);
    out.commit(kDataChunkHeaderBytes + static_cast<size_t>(result.bytes_done));
  }
  if (!ok) return fail_to(Stage::read_chunks, result.code);
  if (left() == 0) finish();
  return std::nullopt;
}

Transmission::Step Transmission::hole_chunk(SendBuffers& out, uint32_t hole_bytes) noexcept {
  const auto room = out.reserve(kHoleChunkBytes);
  if (room.empty()) return Progress::needs_room;
  out.commit(put_hole_chunk(room, request_.cookie, position(), hole_bytes, hole_bytes == left()));
  done_ += hole_bytes;
  spend(1);
  if (left() == 0) finish();
  return std::nullopt;
}

// Chunks before this one stand: the client knows which bytes it has, and that the rest is missing.
Transmission::Step Transmission::error_chunk(SendBuffers& out) noexcept {
  const auto room = out.reserve(kErrorChunkBytes);
  if (room.empty()) return Progress::needs_room;
  out.commit(put_error_chunk(room, request_.cookie, error_));
  finish();
  return std::nullopt;
}

// --- BLOCK_STATUS ----------------------------------------------------------------------------

// Collects extents until the range ends, there are as many as fit, or one was enough.
Transmission::Step Transmission::look_for_extents() noexcept {
  if (work_left_ == 0) return Progress::yields;
  const uint64_t bytes = std::min(left(), kLookBytes);
  const auto free = std::span(extents_).subspan(extents_found_);
  const size_t found = area_.status(position(), bytes, free);
  TUCK_CHECK(found != 0 && found <= free.size());
  uint64_t covered = 0;
  for (const vm::ByteExtent& extent : free.first(found))
    covered += extent.bytes;
  TUCK_CHECK(covered != 0 && covered <= bytes);
  done_ += covered;
  spend(1 + pages_of(covered) / kLookedAtPagesAWorkPage);

  // The first may continue the last one that was found before.
  size_t kept = found;
  if (extents_found_ != 0 && extents_[extents_found_ - 1].kind == free[0].kind) {
    extents_[extents_found_ - 1].bytes += free[0].bytes;
    std::move(free.begin() + 1, free.begin() + static_cast<std::ptrdiff_t>(found), free.begin());
    kept = found - 1;
  }
  extents_found_ += kept;
  return std::nullopt;
}

Transmission::Step Transmission::block_status(SendBuffers& out) noexcept {
  const bool only_one = (request_.flags & kCommandReqOne) != 0;
  const bool enough = extents_found_ == kExtentsMax || (only_one && extents_found_ > 1);
  if (left() != 0 && !enough) return look_for_extents();
  const auto room = out.reserve(block_status_bytes(extents_found_));
  if (room.empty()) return Progress::needs_room;
  out.commit(put_block_status_chunk(
      room, request_.cookie, std::span(extents_).first(extents_found_), request_.length, only_one));
  finish();
  return std::nullopt;
}

}  // namespace tuck::nbd

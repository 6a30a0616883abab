#include "tests/nbd/stream_oracle.h"
#include "tests/nbd/commands.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "frontends/nbd/protocol.h"

namespace tuck::test {

namespace {

constexpr uint32_t kPayloadMax = 32u << 20;

std::string at(uint64_t offset) {
  return " at " + std::to_string(offset);
}

}  // namespace

StreamOracle::StreamOracle(const OracleOptions& options)
    : options_(options), disk_((options.disk_bytes + kPageSize - 1) / kPageSize) {}

// --- The disk ----------------------------------------------------------------------------------

void StreamOracle::put(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto& page = disk_[offset / kPageSize];
    const auto changed =
        page ? std::make_shared<PageBytes>(*page) : std::make_shared<PageBytes>(PageBytes{});
    const size_t length = std::min<size_t>(bytes.size(), kPageSize - offset % kPageSize);
    std::memcpy(changed->data() + offset % kPageSize, bytes.data(), length);
    page = changed;
    bytes = bytes.subspan(length);
    offset += length;
  }
}

void StreamOracle::zero(uint64_t offset, uint64_t length) {
  static constexpr PageBytes zeroes{};
  while (length != 0) {
    const uint64_t bytes = std::min(length, kPageSize - offset % kPageSize);
    if (bytes == kPageSize) {
      disk_[offset / kPageSize] = nullptr;
    } else {
      put(offset, std::span(zeroes).first(bytes));
    }
    offset += bytes;
    length -= bytes;
  }
}

// Whole pages become zeroes, and partial ones stay: more than the protocol promises. The last page
// of the disk ends with the disk.
void StreamOracle::trim(uint64_t offset, uint64_t length) {
  const uint64_t first = (offset + kPageSize - 1) / kPageSize;
  const uint64_t end =
      offset + length == options_.disk_bytes ? disk_.size() : (offset + length) / kPageSize;
  for (uint64_t page = first; page < end; ++page)
    disk_[page] = nullptr;
}

std::string StreamOracle::compare(const Disk& disk, uint64_t offset,
                                  std::span<const std::byte> bytes) {
  static constexpr PageBytes zeroes{};
  while (!bytes.empty()) {
    const auto& page = disk[offset / kPageSize];
    const std::byte* right = (page ? page->data() : zeroes.data()) + offset % kPageSize;
    const size_t length = std::min<size_t>(bytes.size(), kPageSize - offset % kPageSize);
    if (std::memcmp(right, bytes.data(), length) != 0) {
      const auto wrong = std::mismatch(right, right + length, bytes.begin());
      return "the byte" + at(offset + static_cast<uint64_t>(wrong.first - right)) + " is " +
             std::to_string(int(*wrong.second)) + " instead of " +
             std::to_string(int(*wrong.first));
    }
    bytes = bytes.subspan(length);
    offset += length;
  }
  return {};
}

bool StreamOracle::is_zero(const Disk& disk, uint64_t offset, uint64_t length) {
  static constexpr PageBytes zeroes{};
  for (; length != 0;) {
    const uint64_t bytes = std::min(length, kPageSize - offset % kPageSize);
    if (!compare(disk, offset, std::span(zeroes).first(bytes)).empty()) return false;
    offset += bytes;
    length -= bytes;
  }
  return true;
}

std::string StreamOracle::judge_disk(std::span<const std::byte> disk) const {
  // A payload that was cut off may have taken effect in part.
  if (payload_left_ == 0 || payload_.empty()) return compare(disk_, 0, disk);
  std::string before = compare(disk_, 0, disk.first(write_.offset));
  if (!before.empty()) return before;
  const uint64_t end = write_.offset + write_.length;
  return compare(disk_, end, disk.subspan(end));
}

// --- What the client sends ---------------------------------------------------------------------

void StreamOracle::sent(std::span<const std::byte> bytes) {
  while (!bytes.empty() && end_ == End::none) {
    if (payload_left_ != 0) {
      const size_t part = std::min<size_t>(bytes.size(), payload_left_);
      // Refused payloads are skipped.
      if (!payload_.empty()) {
        std::memcpy(&payload_[write_.length - payload_left_], bytes.data(), part);
      }
      payload_left_ -= part;
      bytes = bytes.subspan(part);
      if (payload_left_ == 0) take(write_);
      continue;
    }
    const size_t part = std::min(bytes.size(), nbd::kRequestBytes - in_.size());
    in_.insert(in_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (in_.size() < nbd::kRequestBytes) return;
    const std::byte* raw = in_.data();
    const Header header{nbd::load16(raw + 4), nbd::load16(raw + 6), nbd::load64(raw + 8),
                        nbd::load64(raw + 16), nbd::load32(raw + 24)};
    const bool right_magic = nbd::load32(raw) == nbd::kRequestMagic;
    in_.clear();
    if (!right_magic || (header.command == kWrite && header.length > kPayloadMax)) {
      end_ = End::broken;
    } else if (header.command == kDisconnect) {
      end_ = End::goodbye;
    } else if (header.command == kWrite && header.length != 0) {
      write_ = header;
      payload_left_ = header.length;
      payload_.assign(error_of(header) == 0 ? header.length : 0, std::byte{0});
    } else {
      take(header);
    }
  }
}

// A request that is whole takes effect.
void StreamOracle::take(const Header& header) {
  Expected expected{header, error_of(header), {}, 0};
  if (expected.error == 0) {
    if (header.command == kRead || header.command == kBlockStatus) expected.disk = disk_;
    if (header.command == kWrite) put(header.offset, std::span(payload_).first(header.length));
    if (header.command == kWriteZeroes) zero(header.offset, header.length);
    if (header.command == kTrim) trim(header.offset, header.length);
  }
  expected_.emplace(header.cookie, std::move(expected));
}

uint32_t StreamOracle::error_of(const Header& header) const {
  const uint16_t command = header.command;
  if (command > kBlockStatus) return EINVAL;
  unsigned flags = nbd::kCommandFua;
  if (command == kRead && options_.structured) flags |= nbd::kCommandDf;
  if (command == kWriteZeroes) flags |= nbd::kCommandNoHole | nbd::kCommandFastZero;
  if (command == kBlockStatus) flags |= nbd::kCommandReqOne;
  if ((header.flags & ~flags) != 0) return EINVAL;
  if (command == kFlush) return header.offset == 0 && header.length == 0 ? 0 : EINVAL;
  const bool changes = command == kWrite || command == kTrim || command == kWriteZeroes;
  if (changes && options_.read_only) return EPERM;
  if ((command == kRead || command == kWrite) && header.length > kPayloadMax) return EINVAL;
  if (command == kBlockStatus && (!options_.base_allocation || header.length == 0)) return EINVAL;
  const uint64_t disk = options_.disk_bytes;
  if (header.offset > disk || header.length > disk - header.offset) {
    return command == kWrite || command == kWriteZeroes ? ENOSPC : EINVAL;
  }
  return 0;
}

void StreamOracle::number_requests(std::span<std::byte> stream) {
  for (uint64_t number = 0; stream.size() >= nbd::kRequestBytes; ++number) {
    if (nbd::load32(stream.data()) != nbd::kRequestMagic) return;
    nbd::store64(stream.data() + 8, number);
    const bool payload = nbd::load16(stream.data() + 6) == kWrite;
    const uint64_t skip = nbd::kRequestBytes + (payload ? nbd::load32(stream.data() + 24) : 0);
    stream = stream.subspan(static_cast<size_t>(std::min<uint64_t>(skip, stream.size())));
  }
}

// --- What the server answers -------------------------------------------------------------------

std::string StreamOracle::received(std::span<const std::byte> bytes) {
  heard_.insert(heard_.end(), bytes.begin(), bytes.end());
  size_t judged = 0;
  for (;;) {
    const auto [wrong, used] = judge(std::span(heard_).subspan(judged));
    if (!wrong.empty()) return wrong;
    if (used == 0) break;
    judged += used;
  }
  heard_.erase(heard_.begin(), heard_.begin() + static_cast<std::ptrdiff_t>(judged));
  return {};
}

StreamOracle::Verdict StreamOracle::judge(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return {};
  const uint32_t magic = nbd::load32(bytes.data());
  if (magic == nbd::kSimpleReplyMagic) return judge_simple(bytes);
  if (magic == nbd::kChunkMagic && options_.structured) return judge_chunk(bytes);
  return {"no reply begins with " + std::to_string(magic), 0};
}

StreamOracle::Verdict StreamOracle::judge_simple(std::span<const std::byte> bytes) {
  if (bytes.size() < nbd::kSimpleReplyBytes) return {};
  const auto found = expected_.find(nbd::load64(bytes.data() + 8));
  if (found == expected_.end()) return {"a reply to nothing", 0};
  const Expected& request = found->second;
  const std::string who = "the reply to request " + std::to_string(request.header.cookie);
  const uint32_t error = nbd::load32(bytes.data() + 4);
  if (error != request.error) {
    return {who + " says " + std::to_string(error) + " instead of " + std::to_string(request.error),
            0};
  }
  const bool read = request.header.command == kRead;
  if (options_.structured && read) return {who + " is a simple one", 0};
  const size_t data = read && error == 0 ? request.header.length : 0;
  if (bytes.size() - nbd::kSimpleReplyBytes < data) return {};
  const std::string wrong =
      compare(request.disk, request.header.offset, bytes.subspan(nbd::kSimpleReplyBytes, data));
  if (!wrong.empty()) return {who + ": " + wrong, 0};
  answered_.push_back(found->first);
  expected_.erase(found);
  return {"", nbd::kSimpleReplyBytes + data};
}

StreamOracle::Verdict StreamOracle::judge_chunk(std::span<const std::byte> bytes) {
  if (bytes.size() < nbd::kChunkHeaderBytes) return {};
  const uint16_t flags = nbd::load16(bytes.data() + 4);
  const uint16_t type = nbd::load16(bytes.data() + 6);
  const size_t length = nbd::load32(bytes.data() + 16);
  const auto found = expected_.find(nbd::load64(bytes.data() + 8));
  if (found == expected_.end()) return {"a chunk for nothing", 0};
  Expected& request = found->second;
  const std::string who = "a chunk for request " + std::to_string(request.header.cookie);
  if (length > kPayloadMax + 8) return {who + " is too long", 0};
  if (bytes.size() - nbd::kChunkHeaderBytes < length) return {};
  const auto payload = bytes.subspan(nbd::kChunkHeaderBytes, length);
  const bool done = (flags & nbd::kChunkDone) != 0;
  std::string wrong;
  if ((type & 0x8000) != 0) {
    if (length < 6 || nbd::load32(payload.data()) != request.error || request.error == 0) {
      wrong = " has an error that is not right";
    }
  } else if (request.error != 0) {
    wrong = " has content, not the error " + std::to_string(request.error);
  } else if (type == uint16_t(nbd::ChunkType::none)) {
    if (length != 0 || !done) wrong = " says nothing, and goes on";
    if (request.header.command == kBlockStatus) wrong = " says nothing";
  } else if (request.header.command == kRead) {
    wrong = judge_read_chunk(request, type, payload);
  } else if (request.header.command == kBlockStatus &&
             type == uint16_t(nbd::ChunkType::block_status)) {
    wrong = judge_block_status(request, payload);
  } else {
    wrong = " has a type that does not fit: " + std::to_string(type);
  }
  const bool whole = request.header.command != kRead || request.error != 0 ||
                     request.covered == request.header.length;
  if (wrong.empty() && done && !whole) wrong = " is the last, and bytes are missing";
  if (!wrong.empty()) return {who + wrong, 0};
  if (done) {
    answered_.push_back(found->first);
    expected_.erase(found);
  }
  return {"", nbd::kChunkHeaderBytes + length};
}

// In ascending order and without gaps, as this server sends them; one only where DF asks for it.
std::string StreamOracle::judge_read_chunk(Expected& request, uint16_t type,
                                           std::span<const std::byte> payload) {
  const bool hole = type == uint16_t(nbd::ChunkType::offset_hole);
  if (!hole && type != uint16_t(nbd::ChunkType::offset_data)) return " is no content";
  if (payload.size() < 9 || (hole && payload.size() != 12)) return " is too short";
  const uint64_t offset = nbd::load64(payload.data());
  const uint64_t length = hole ? nbd::load32(payload.data() + 8) : payload.size() - 8;
  if (offset != request.header.offset + request.covered || length == 0 ||
      length > request.header.length - request.covered) {
    return " has bytes that are not its turn:" + at(offset);
  }
  request.covered += length;
  const bool one = (request.header.flags & nbd::kCommandDf) != 0;
  if (one && request.covered != request.header.length) return " is not the only one";
  if (hole) return is_zero(request.disk, offset, length) ? "" : " calls a hole what is none";
  const std::string wrong = compare(request.disk, offset, payload.subspan(8));
  return wrong.empty() ? wrong : ": " + wrong;
}

std::string StreamOracle::judge_block_status(const Expected& request,
                                             std::span<const std::byte> payload) const {
  if (payload.size() < 12 || payload.size() % 8 != 4) return " has no extents";
  if (nbd::load32(payload.data()) != nbd::kBaseAllocationId) return " is of another context";
  uint64_t covered = 0;
  for (size_t i = 4; i < payload.size(); i += 8) {
    const uint64_t length = nbd::load32(payload.data() + i);
    const uint32_t flags = nbd::load32(payload.data() + i + 4);
    if (length == 0 || length > request.header.length - covered) return " has a wrong extent";
    if ((flags & nbd::kStateZero) != 0 &&
        !is_zero(request.disk, request.header.offset + covered, length)) {
      return " calls zero what is not:" + at(request.header.offset + covered);
    }
    covered += length;
  }
  const bool one = (request.header.flags & nbd::kCommandReqOne) != 0;
  return one && payload.size() != 12 ? " has more than one extent" : "";
}

}  // namespace tuck::test

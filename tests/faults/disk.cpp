#include "tests/faults/disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tuck::test {

namespace {

// Calls again where the area has stopped (for its other callers' sake, or for want of room that is
// on its way) until all is done or it says no.
template <class Call>
Change in_full(uint64_t bytes, Call call) {
  uint64_t done = 0;
  while (done < bytes) {
    engine::Ticket ticket;
    const vm::ByteResult result = call(done, &ticket);
    done += result.bytes_done;
    switch (result.code) {
      case Errc::ok:
        break;
      case Errc::pending:
        ticket.wait();
        break;
      case Errc::no_space:
        return {Change::End::no_space, done, {}};
      default:
        return {Change::End::broken, done, name_of(result.code)};
    }
  }
  return {Change::End::done, done, {}};
}

Change over_nbd(int error) {
  if (error == 0) return {};
  if (error == ENOSPC) return {Change::End::no_space, {}, {}};
  return {Change::End::broken, {}, nbd_get_error() == nullptr ? "?" : nbd_get_error()};
}

}  // namespace

// --- Disks -----------------------------------------------------------------------------------

Change AreaDisk::write(uint64_t offset, std::span<const std::byte> data) {
  return in_full(data.size(), [&](uint64_t done, engine::Ticket* ticket) {
    return area_.write(offset + done, data.subspan(done), ticket);
  });
}

Change AreaDisk::zero(uint64_t offset, uint64_t bytes, bool keep_allocated) {
  return in_full(bytes, [&](uint64_t done, engine::Ticket* ticket) {
    return area_.write_zeroes(offset + done, bytes - done, keep_allocated, ticket);
  });
}

Change AreaDisk::trim(uint64_t offset, uint64_t bytes) {
  return in_full(bytes, [&](uint64_t done, engine::Ticket*) {
    return area_.trim(offset + done, bytes - done);
  });
}

std::string AreaDisk::read(uint64_t offset, std::span<std::byte> out) {
  engine::Ticket ticket;
  const vm::ByteResult result = area_.read(offset, out, &ticket);
  return result.code == Errc::ok ? std::string() : name_of(result.code);
}

NbdDisk::NbdDisk(const std::string& uri) {
  EXPECT_EQ(client_.connect(uri), 0) << nbd_get_error();
}

Change NbdDisk::write(uint64_t offset, std::span<const std::byte> data) {
  return over_nbd(client_.write(offset, data));
}
Change NbdDisk::zero(uint64_t offset, uint64_t bytes, bool keep_allocated) {
  return over_nbd(client_.zero(offset, bytes, keep_allocated ? LIBNBD_CMD_FLAG_NO_HOLE : 0));
}
Change NbdDisk::trim(uint64_t offset, uint64_t bytes) {
  return over_nbd(client_.trim(offset, bytes));
}
std::string NbdDisk::read(uint64_t offset, std::span<std::byte> out) {
  return client_.read(offset, out) == 0 ? std::string() : nbd_get_error();
}

// --- The oracle ------------------------------------------------------------------------------

std::span<const std::byte> some_bytes(Random& random, size_t bytes) {
  // Made once: a slice is a hundred times faster than fresh random numbers.
  static const Bytes source = random_bytes(4711, 4u << 20);
  return std::span(source).subspan(random.below(source.size() - bytes), bytes);
}

OwnedBytes::OwnedBytes(uint64_t disk_bytes, uint64_t piece_bytes, uint64_t index, uint64_t count) {
  for (uint64_t i = index; (i + 1) * piece_bytes <= disk_bytes; i += count) {
    pieces_.push_back({i * piece_bytes, std::vector<std::byte>(piece_bytes)});
  }
  scratch_.resize(piece_bytes);
}

std::string OwnedBytes::step(Disk& disk, Random& random) {
  Piece& piece = pieces_[random.below(pieces_.size())];
  const uint64_t at = random.below(piece.bytes.size());
  const uint64_t bytes = random.between(1, piece.bytes.size() - at);
  const uint64_t offset = piece.offset + at;
  const auto part = std::span(piece.bytes).subspan(at, bytes);
  switch (random.below(10)) {
    case 0:
    case 1: {
      const auto out = std::span(scratch_).first(bytes);
      const std::string wrong = disk.read(offset, out);
      if (disk.lost()) return {};
      return wrong.empty() ? compare(offset, out, part) : "a read failed: " + wrong;
    }
    case 2: {
      const std::vector<std::byte> zeroes(bytes);
      return change(disk, piece, at, zeroes, disk.zero(offset, bytes, random.one_in(2)));
    }
    case 3: {
      // Whole pages become zeroes, the edges stay.
      const Change how = disk.trim(offset, bytes);
      if (how.end == Change::End::no_space) return "a trim was refused";
      const uint64_t begin = (offset + kPageSize - 1) / kPageSize * kPageSize;
      const uint64_t end = std::max(begin, (offset + bytes) / kPageSize * kPageSize);
      const std::vector<std::byte> zeroes(end - begin);
      const Change whole{how.end, {}, how.message};
      return change(disk, piece, begin - piece.offset, zeroes, whole);
    }
    default: {
      const auto data = some_bytes(random, bytes);
      return change(disk, piece, at, data, disk.write(offset, data));
    }
  }
}

// Takes a change into account.
std::string OwnedBytes::change(Disk& disk, Piece& piece, uint64_t at,
                               std::span<const std::byte> data, const Change& how) {
  if (how.end == Change::End::broken) return "a write failed: " + how.message;
  if (how.end == Change::End::lost) {
    lost_ = {&piece, at, {data.begin(), data.end()}};
    return {};
  }
  if (how.end == Change::End::no_space) ++refused_;
  const uint64_t told = how.end == Change::End::done ? data.size() : how.bytes.value_or(0);
  std::copy_n(data.begin(), told, piece.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  if (how.end == Change::End::done) return {};
  if (!how.bytes) return settle(disk, piece, at, data);
  // It was told how far it got: what is behind that is what it was.
  const auto found = std::span(scratch_).first(data.size() - told);
  if (auto wrong = disk.read(piece.offset + at + told, found); !wrong.empty())
    return "a read failed: " + wrong;
  const auto wrong = compare(piece.offset + at + told, found,
                             std::span(piece.bytes).subspan(at + told, found.size()));
  return wrong.empty() ? wrong : "behind the end of a refused write: " + wrong;
}

// After a refusal, or a loss: bytes are the old ones. If nobody has said how far it got there may
// be new ones before them; they end where a page does.
std::string OwnedBytes::settle(Disk& disk, Piece& piece, uint64_t at,
                               std::span<const std::byte> data) {
  if (data.empty()) return {};
  const uint64_t offset = piece.offset + at;
  const auto found = std::span(scratch_).first(data.size());
  const std::string failure = disk.read(offset, found);
  if (disk.lost()) {
    lost_ = {&piece, at, {data.begin(), data.end()}};
    return {};
  }
  if (!failure.empty()) return "a read failed: " + failure;
  const auto old = std::span(piece.bytes).subspan(at, data.size());
  const auto until = std::mismatch(found.begin(), found.end(), data.begin()).first;
  auto fresh = static_cast<uint64_t>(until - found.begin());
  if (fresh != data.size()) {
    const uint64_t border = (offset + fresh) / kPageSize * kPageSize;
    fresh = border > offset ? border - offset : 0;
  }
  if (auto wrong = compare(offset + fresh, found.subspan(fresh), old.subspan(fresh));
      !wrong.empty()) {
    return "after a write that was refused or lost: " + wrong;
  }
  std::copy(found.begin(), found.end(), old.begin());
  return {};
}

std::string OwnedBytes::settle_lost(Disk& disk) {
  if (lost_.piece == nullptr) return {};
  const Lost lost = std::exchange(lost_, {});
  return settle(disk, *lost.piece, lost.at, lost.data);
}

std::string OwnedBytes::compare(uint64_t offset, std::span<const std::byte> found,
                                std::span<const std::byte> expected) {
  const auto [at, wanted] = std::mismatch(found.begin(), found.end(), expected.begin());
  if (at == found.end()) return {};
  return "wrong byte at " + std::to_string(offset + static_cast<uint64_t>(at - found.begin())) +
         " (of " + std::to_string(found.size()) + " from " + std::to_string(offset) +
         "): " + std::to_string(std::to_integer<int>(*at)) + ", not " +
         std::to_string(std::to_integer<int>(*wanted));
}

std::string OwnedBytes::check(Disk& disk) const {
  std::vector<std::byte> out;
  for (const Piece& piece : pieces_) {
    out.resize(piece.bytes.size());
    if (auto wrong = disk.read(piece.offset, out); !wrong.empty()) return "a read failed: " + wrong;
    if (auto wrong = compare(piece.offset, out, piece.bytes); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace tuck::test

// Random operations of several connections from several threads against an oracle that knows every
// byte. Each thread owns stripes of the disk; their borders lie anywhere, so that neighbours share
// pages: what one writes must never undo what the other wrote.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tests/nbd/clients.h"
#include "tests/nbd/test_server.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/threads.h"

namespace tuck::test {
namespace {

constexpr uint32_t kThreads = 4;
constexpr uint32_t kConnectionsAThread = 2;
constexpr uint64_t kDisk = (6u << 20) + 1234;

struct Stripe {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Cuts the disk at random places: some stripes are smaller than a page, some are large.
std::array<std::vector<Stripe>, kThreads> cut(Random& random) {
  std::array<std::vector<Stripe>, kThreads> stripes;
  uint64_t at = 0;
  for (uint32_t owner = 0; at < kDisk; owner = (owner + 1) % kThreads) {
    uint64_t length = random.one_in(3)   ? random.between(1, 3 * kPageSize)
                      : random.one_in(4) ? random.between(1, 1 << 20)
                                         : random.between(1, 100'000);
    if (random.one_in(4)) length = (length + kPageSize) / kPageSize * kPageSize;
    const uint64_t end = std::min(kDisk, at + length);
    stripes[owner].push_back({at, end});
    at = end;
  }
  return stripes;
}

class Player {
 public:
  Player(TestServer& server, uint32_t index, std::vector<Stripe> stripes, Bytes& oracle)
      : random_(mix(seed(), index)), stripes_(std::move(stripes)), oracle_(oracle) {
    for (uint32_t i = 0; i < kConnectionsAThread; ++i) {
      clients_.emplace_back(ClientOptions{i % 2 == 0, true});
      if (clients_.back().connect(server.unix_uri()) != 0) {
        ADD_FAILURE() << nbd_get_error();
      }
    }
  }

  // False: something was wrong, and said so.
  bool step() {
    choose_range();
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return write();
      case 4:
      case 5:
      case 6:
        return read();
      case 7:
        return trim();
      case 8:
      case 9:
        return zero();
      case 10:
        return many_at_once();
      default:
        return status_or_flush();
    }
  }

 private:
  void choose_range() {
    client_ = &clients_[random_.below(clients_.size())];
    const Stripe stripe = stripes_[random_.below(stripes_.size())];
    offset_ =
        random_.one_in(3) ? stripe.begin : stripe.begin + random_.below(stripe.end - stripe.begin);
    const uint64_t most = stripe.end - offset_;
    bytes_ = random_.one_in(3)   ? most
             : random_.one_in(3) ? random_.between(1, most)
                                 : random_.between(1, std::min<uint64_t>(most, 2 * kPageSize));
  }
  auto oracle(uint64_t offset) { return oracle_.begin() + static_cast<std::ptrdiff_t>(offset); }
  bool fine(int error, const char* what) {
    EXPECT_EQ(error, 0) << what << " of " << bytes_ << " at " << offset_ << ": " << nbd_get_error();
    return error == 0;
  }

  bool write() {
    const Bytes data = random_bytes(random_.next(), bytes_);
    if (!fine(client_->write(offset_, data), "write")) return false;
    std::copy(data.begin(), data.end(), oracle(offset_));
    return true;
  }
  bool read() {
    Bytes out(bytes_);
    return fine(client_->read(offset_, out), "read") && same(offset_, out);
  }
  bool same(uint64_t offset, const Bytes& out) {
    const auto wrong = std::mismatch(out.begin(), out.end(), oracle(offset)).first - out.begin();
    if (static_cast<size_t>(wrong) == out.size()) return true;
    ADD_FAILURE() << "read of " << out.size() << " at " << offset << ": byte " << wrong << " is "
                  << int(out[static_cast<size_t>(wrong)]) << " instead of "
                  << int(*oracle(offset + static_cast<uint64_t>(wrong)));
    return false;
  }
  // Whole pages become zeroes, partial ones stay as they are: more than the protocol promises.
  bool trim() {
    if (!fine(client_->trim(offset_, bytes_), "trim")) return false;
    const uint64_t first = (offset_ + kPageSize - 1) / kPageSize * kPageSize;
    // The disk's last page ends with the disk.
    const uint64_t end = offset_ + bytes_;
    const uint64_t last = end == kDisk ? end : end / kPageSize * kPageSize;
    if (first >= last) return true;
    Bytes out(last - first);
    if (!fine(client_->read(first, out), "read after trim")) return false;
    const bool cleared =
        std::all_of(out.begin(), out.end() - (last == kDisk ? kDisk % kPageSize : 0),
                    [](std::byte b) { return b == std::byte{0}; });
    EXPECT_TRUE(cleared) << "trim of " << bytes_ << " at " << offset_;
    std::copy(out.begin(), out.end(), oracle(first));
    return cleared;
  }
  bool zero() {
    const uint32_t flags = random_.one_in(2) ? LIBNBD_CMD_FLAG_NO_HOLE : LIBNBD_CMD_FLAG_FAST_ZERO;
    if (!fine(client_->zero(offset_, bytes_, flags), "zero")) return false;
    std::fill_n(oracle(offset_), bytes_, std::byte{0});
    return true;
  }
  // What is told to be zero must be. Pages at the edges may belong to others in part: not looked
  // at.
  bool status_or_flush() {
    if (random_.one_in(3)) return fine(client_->flush(), "flush");
    if (random_.one_in(3)) return fine(client_->cache(offset_, bytes_), "cache");
    if (nbd_get_structured_replies_negotiated(client_->handle()) != 1) return true;
    std::vector<Client::Extent> extents;
    if (!fine(client_->status(offset_, bytes_, &extents), "status")) return false;
    uint64_t at = offset_;
    for (const Client::Extent& extent : extents) {
      const uint64_t end = std::min(at + extent.bytes, offset_ + bytes_);
      const bool all_zero =
          std::all_of(oracle(at), oracle(end), [](std::byte b) { return b == std::byte{0}; });
      EXPECT_TRUE((extent.flags & 2) == 0 || all_zero)
          << "said to be zero: " << extent.bytes << " at " << at;
      if ((extent.flags & 2) != 0 && !all_zero) return false;
      at = end;
    }
    return true;
  }
  // Writes of disjoint pieces in flight together, then reads of them.
  bool many_at_once() {
    const uint64_t piece = std::max<uint64_t>(1, bytes_ / 24);
    const Bytes data = random_bytes(random_.next(), bytes_);
    nbd_handle* h = client_->handle();
    Bytes out(bytes_);
    for (const bool writing : {true, false}) {
      std::vector<int64_t> cookies;
      for (uint64_t at = 0; at < bytes_; at += piece) {
        const size_t length = std::min(piece, bytes_ - at);
        const int64_t cookie =
            writing ? nbd_aio_pwrite(h, &data[at], length, offset_ + at, NBD_NULL_COMPLETION, 0)
                    : nbd_aio_pread(h, &out[at], length, offset_ + at, NBD_NULL_COMPLETION, 0);
        if (!fine(cookie < 0 ? EIO : 0, "queueing")) return false;
        cookies.push_back(cookie);
      }
      for (const int64_t cookie : cookies) {
        int done = 0;
        while ((done = nbd_aio_command_completed(h, static_cast<uint64_t>(cookie))) == 0) {
          if (nbd_poll(h, -1) < 0) return fine(EIO, "poll");
        }
        if (!fine(done < 0 ? EIO : 0, writing ? "one of many writes" : "one of many reads")) {
          return false;
        }
      }
      if (writing) std::copy(data.begin(), data.end(), oracle(offset_));
    }
    return same(offset_, out);
  }

  Random random_;
  const std::vector<Stripe> stripes_;
  Bytes& oracle_;
  std::vector<Client> clients_;
  Client* client_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t bytes_ = 0;
};

void play(const TestServerOptions& base) {
  TestServerOptions options = base;
  options.disk_bytes = kDisk;
  TestServer server(std::move(options));
  Bytes oracle(kDisk);
  Random random(seed());
  const auto stripes = cut(random);
  run_threads(kThreads, [&](uint32_t index) {
    Player player(server, index, stripes[index], oracle);
    const uint32_t steps = scaled(12'000);
    for (uint32_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      if (!player.step()) break;
    }
  });
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0) << nbd_get_error();
  const Bytes all = client.must_read(0, kDisk);
  ASSERT_EQ(all.size(), oracle.size());
  const auto wrong = std::mismatch(all.begin(), all.end(), oracle.begin()).first - all.begin();
  EXPECT_EQ(static_cast<size_t>(wrong), all.size()) << "the first wrong byte of the disk";
}

TEST(NbdModel, EveryByteIsTheOneThatWasWrittenLast) {
  play({});
}

TEST(NbdModel, TheSameWithZstdPollingAndStoresThatWait) {
  TestServerOptions options;
  options.codec = {engine::CodecKind::zstd, 1};
  options.engine.empty_reserve = engine::EmptyReserve::wait;
  options.engine.reserve_bytes = 128u << 10;
  options.server.poll_time = std::chrono::microseconds(20);
  options.server.workers = 3;
  play(options);
}

}  // namespace
}  // namespace tuck::test

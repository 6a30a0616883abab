// Four connections on the same few pages: bytes of their own, each other's bytes, whole pages,
// zeroes, holes and looks at what is there, several requests in flight on each. Every byte that is
// read, and every zero that BLOCK_STATUS tells of, must be explained by one order of all requests,
// which respects when they were sent and answered, and on each connection the order of those that
// touch the same bytes.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "tests/nbd/clients.h"
#include "tests/nbd/test_server.h"
#include "tests/support/cells.h"
#include "tests/support/register_history.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/threads.h"

namespace tuck::test {
namespace {

constexpr uint32_t kConnections = 4;
constexpr uint32_t kPages = 20;
// In flight on a connection. All four together stay below what the judge can follow (kOpenMax).
constexpr size_t kDepth = 5;
static_assert(kDepth * kConnections <= kOpenMax);
constexpr uint64_t kDisk = 24u << 20;
// Behind the pages that are fought over: for whoever takes the room away.
constexpr uint64_t kBallast = 1u << 20;

// What all share.
struct Arena {
  explicit Arena(uint64_t of_seed) : cells(kPages, of_seed) {}

  const Cells cells;
  Clock clock;
  std::atomic<uint32_t> versions{1};
  std::atomic<uint32_t> playing{kConnections};
};

// Consecutive cells.
struct Range {
  uint32_t first = 0;
  uint32_t last = 0;
};

class Player {
 public:
  Player(TestServer& server, Arena& arena, uint32_t lane, CellLog& log)
      : arena_(arena), cells_(arena.cells), lane_(lane), random_(mix(seed(), lane)), log_(log) {
    if (client_.connect(server.unix_uri()) != 0) ADD_FAILURE() << nbd_get_error();
  }

  void play(uint32_t requests) {
    for (uint32_t i = 0; i < requests && !failed_; ++i) {
      while (in_flight_.size() >= random_.between(1, kDepth) && !failed_)
        finish_one();
      send();
    }
    while (!in_flight_.empty() && !failed_)
      finish_one();
  }

 private:
  enum class Command : uint8_t { write, zero, trim, read, status };
  struct InFlight {
    Command command{};
    Range range;
    uint64_t begin = 0;
    int64_t cookie = -1;
    Bytes data;
    std::vector<uint32_t> values;  // written, a cell each
    std::vector<Client::Extent> extents;
  };

  uint64_t offset(const Range& range) const { return cells_.begin(range.first); }
  uint64_t length(const Range& range) const {
    return cells_.end(range.last - 1) - cells_.begin(range.first);
  }
  void fail(const char* what) {
    ADD_FAILURE() << "connection " << lane_ << ": " << what << ": " << nbd_get_error();
    failed_ = true;
  }

  // --- What to ask for ---------------------------------------------------------------------------

  Range whole_pages() {
    const uint32_t page = random_.below32(kPages);
    const uint32_t end = std::min(kPages, page + static_cast<uint32_t>(random_.between(1, 3)));
    return {cells_.first_of_page(page), cells_.first_of_page(end)};
  }
  // One of those that nobody else writes alone.
  Range own_cell() {
    const uint32_t cell = random_.below32(cells_.count() / kConnections) * kConnections + lane_;
    return {cell, cell + 1};
  }
  // From anywhere in one page to anywhere in the next ones.
  Range any_cells() {
    const uint32_t first = random_.below32(cells_.count());
    const uint32_t last = first + 1 + random_.below32(random_.one_in(3) ? 14 : 3);
    return {first, std::min(last, cells_.count())};
  }
  Range some_cells() {
    return random_.one_in(2) ? own_cell() : random_.one_in(2) ? any_cells() : whole_pages();
  }

  void send() {
    in_flight_.push_back(std::make_unique<InFlight>());
    InFlight& request = *in_flight_.back();
    nbd_handle* const h = client_.handle();
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        request.command = Command::write;
        request.range = some_cells();
        make_data(request);
        request.begin = arena_.clock.now();
        request.cookie = nbd_aio_pwrite(h, request.data.data(), request.data.size(),
                                        offset(request.range), NBD_NULL_COMPLETION, 0);
        break;
      }
      case 4: {
        request.command = Command::zero;
        request.range = some_cells();
        const uint32_t flags = random_.one_in(2) ? LIBNBD_CMD_FLAG_NO_HOLE : 0;
        request.begin = arena_.clock.now();
        request.cookie = nbd_aio_zero(h, length(request.range), offset(request.range),
                                      NBD_NULL_COMPLETION, flags);
        break;
      }
      case 5:
        request.command = Command::trim;
        request.range = random_.one_in(2) ? whole_pages() : any_cells();
        request.begin = arena_.clock.now();
        request.cookie =
            nbd_aio_trim(h, length(request.range), offset(request.range), NBD_NULL_COMPLETION, 0);
        break;
      case 6:
      case 7:
        send_status(request);
        break;
      default:
        request.command = Command::read;
        request.range = random_.one_in(3) ? some_cells() : whole_pages();
        request.data.resize(length(request.range));
        request.begin = arena_.clock.now();
        request.cookie = nbd_aio_pread(h, request.data.data(), request.data.size(),
                                       offset(request.range), NBD_NULL_COMPLETION, 0);
    }
    if (request.cookie < 0) fail("a request could not be sent");
  }
  void make_data(InFlight& request) {
    request.data.resize(length(request.range));
    const uint32_t version = arena_.versions.fetch_add(1, std::memory_order_relaxed);
    for (uint32_t cell = request.range.first; cell < request.range.last; ++cell) {
      request.values.push_back(cells_.fill(
          cell, version, request.data.data() + (cells_.begin(cell) - offset(request.range))));
    }
  }
  void send_status(InFlight& request) {
    request.command = Command::status;
    request.range = random_.one_in(4) ? any_cells() : whole_pages();
    nbd_extent_callback callback{};
    callback.user_data = &request.extents;
    callback.callback = [](void* user_data, const char*, uint64_t, uint32_t* entries, size_t count,
                           int*) {
      auto* const out = static_cast<std::vector<Client::Extent>*>(user_data);
      for (size_t i = 0; i + 1 < count; i += 2)
        out->push_back({entries[i], entries[i + 1]});
      return 0;
    };
    request.begin = arena_.clock.now();
    request.cookie = nbd_aio_block_status(client_.handle(), length(request.range),
                                          offset(request.range), callback, NBD_NULL_COMPLETION, 0);
  }

  // --- What has come of it -----------------------------------------------------------------------

  // Any one that is answered; replies come in any order.
  void finish_one() {
    for (;;) {
      for (auto it = in_flight_.begin(); it != in_flight_.end(); ++it) {
        const int done =
            nbd_aio_command_completed(client_.handle(), static_cast<uint64_t>((*it)->cookie));
        if (done == 0) continue;
        const int error = done < 0 ? nbd_get_errno() : 0;
        const std::unique_ptr<InFlight> request = std::move(*it);
        in_flight_.erase(it);
        note(*request, error);
        return;
      }
      if (nbd_poll(client_.handle(), -1) < 0) return fail("poll");
    }
  }
  void note(const InFlight& request, int error) {
    Operation times;
    times.lane = lane_;
    times.begin = request.begin;
    times.end = arena_.clock.now();
    const bool may_be_refused =
        request.command == Command::write || request.command == Command::zero;
    if (error != 0 && !(error == ENOSPC && may_be_refused)) return fail("a request failed");
    switch (request.command) {
      case Command::write:
      case Command::zero:
        note_written(request, times, error != 0);
        break;
      case Command::trim:
        note_trimmed(request.range, times);
        break;
      case Command::read:
        if (!log_.add_read(request.range.first, request.range.last, request.data, times)) {
          fail(log_.broken().c_str());
        }
        break;
      case Command::status:
        note_status(request, times);
    }
  }
  // A refused request has left its bytes as they were; of several pages those before the one that
  // found no room may be written.
  void note_written(const InFlight& request, Operation times, bool refused) {
    const Range& range = request.range;
    if (refused && cells_.page_of(range.first) == cells_.page_of(range.last - 1)) return;
    times.kind = refused ? Operation::Kind::may_write : Operation::Kind::write;
    for (uint32_t cell = range.first; cell < range.last; ++cell) {
      times.value = request.command == Command::zero ? 0 : request.values[cell - range.first];
      log_.add(cell, times);
    }
  }
  // The whole pages of the range are zeroes; partial ones are left alone.
  void note_trimmed(const Range& range, Operation times) {
    times.kind = Operation::Kind::write;
    for (uint32_t page = 0; page < kPages; ++page) {
      const uint32_t first = cells_.first_of_page(page);
      const uint32_t last = cells_.first_of_page(page + 1);
      if (first < range.first || last > range.last) continue;
      for (uint32_t cell = first; cell < last; ++cell)
        log_.add(cell, times);
    }
  }
  // What is told to be zero was zero at some moment of the request.
  void note_status(const InFlight& request, Operation times) {
    times.kind = Operation::Kind::see;
    times.value = 0;
    uint64_t at = offset(request.range);
    uint32_t cell = request.range.first;
    for (const Client::Extent& extent : request.extents) {
      at += extent.bytes;
      if (extent.flags != 0 && (extent.flags & LIBNBD_STATE_ZERO) == 0) {
        return fail("a hole that is not zero");
      }
      for (; cell < request.range.last && cells_.end(cell) <= at; ++cell) {
        if ((extent.flags & LIBNBD_STATE_ZERO) != 0) log_.add(cell, times);
      }
      // An extent ends with a page, and so with a cell, or with the request.
      if (cell < request.range.last && cells_.begin(cell) != at) return fail("an odd extent");
    }
    if (request.extents.empty()) fail("a status without an extent");
  }

  Arena& arena_;
  const Cells& cells_;
  const uint32_t lane_;
  Random random_;
  CellLog& log_;
  Client client_;
  std::deque<std::unique_ptr<InFlight>> in_flight_;
  bool failed_ = false;
};

// Plays, has beside(server, arena) run along, and judges.
template <class Beside>
void play(TestServerOptions options, uint32_t requests, Beside beside) {
  options.disk_bytes = kDisk;
  TestServer server(std::move(options));
  Arena arena(seed());
  std::vector<CellLog> logs(kConnections + 1, CellLog(arena.cells));
  run_threads(kConnections + 1, [&](uint32_t thread) {
    if (thread == kConnections) return beside(server, arena);
    Player player(server, arena, thread, logs[thread]);
    player.play(requests);
    --arena.playing;
  });
  // What is there in the end is part of the history.
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0) << nbd_get_error();
  Operation times;
  times.lane = kConnections;
  times.begin = arena.clock.now();
  const Bytes all = client.must_read(0, uint64_t{kPages} * kPageSize);
  times.end = arena.clock.now();
  ASSERT_FALSE(all.empty());
  logs[kConnections].add_read(0, arena.cells.count(), all, times);
  EXPECT_EQ(find_impossible(arena.cells, logs), std::nullopt);
}

void nothing_beside(TestServer&, Arena&) {}

TEST(NbdConcurrent, BytesOfSharedPages) {
  TestServerOptions options;
  options.server.workers = 2;
  play(std::move(options), scaled(8000), nothing_beside);
}

// Every codec in turn, under the writers' hands.
TEST(NbdConcurrent, BytesOfSharedPagesWhileTheCodecChanges) {
  TestServerOptions options;
  options.server.workers = 4;
  options.server.poll_time = std::chrono::microseconds(20);
  play(std::move(options), scaled(5000), [](TestServer& server, Arena& arena) {
    constexpr std::array<engine::CodecSetting, 5> kCodecs = {{{engine::CodecKind::zstd, 1},
                                                              {engine::CodecKind::none, 0},
                                                              {engine::CodecKind::lz4, 8},
                                                              {engine::CodecKind::zstd, -5},
                                                              {engine::CodecKind::lz4, 1}}};
    const AreaId disk = server.engine().stats().areas.at(0).id;
    for (size_t i = 0; arena.playing.load() != 0; ++i) {
      EXPECT_EQ(server.engine().set_codec(disk, kCodecs[i % kCodecs.size()]), std::nullopt);
      std::this_thread::yield();
    }
  });
}

// Writes incompressible pages behind the others' until there is no room, gives some back, and takes
// it again: now a store finds room and now it does not.
void take_the_room(TestServer& server, Arena& arena) {
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0) << nbd_get_error();
  Random random(mix(seed(), 99));
  Bytes page(kPageSize);
  uint64_t end = kBallast;
  const auto fill = [&] {
    for (;;) {
      for (std::byte& byte : page)
        byte = static_cast<std::byte>(random.next() >> 17);
      const int error = client.write(end, page);
      if (error == ENOSPC) return;
      ASSERT_EQ(error, 0) << nbd_get_error();
      end += kPageSize;
      ASSERT_LT(end, kDisk - kPageSize) << "the limit is not reached";
    }
  };
  do {
    fill();
    if (testing::Test::HasFailure()) return;
    const uint64_t back = random.between(1, 8) * kPageSize;
    if (end - kBallast < back) continue;
    end -= back;
    ASSERT_EQ(client.trim(end, back), 0) << nbd_get_error();
    std::this_thread::yield();
  } while (arena.playing.load() != 0);
}

TEST(NbdConcurrent, BytesOfSharedPagesAtTheMemoryLimit) {
  TestServerOptions options;
  options.engine.memory_limit_bytes = 1u << 20;
  options.engine.reserve_bytes = 64u << 10;
  options.server.workers = 2;
  play(std::move(options), scaled(6000), [](TestServer& server, Arena& arena) {
    take_the_room(server, arena);
    EXPECT_GT(server.operation("write").errors, 0u);
  });
}

// Somebody writes more than the reserve again and again, so that all others have to wait for room
// now and then; until somebody has.
TEST(NbdConcurrent, BytesOfSharedPagesThatWaitForRoom) {
  TestServerOptions options;
  options.engine.empty_reserve = engine::EmptyReserve::wait;
  options.engine.reserve_bytes = 128u << 10;
  options.server.workers = 3;
  play(std::move(options), scaled(6000), [](TestServer& server, Arena& arena) {
    Client client;
    ASSERT_EQ(client.connect(server.unix_uri()), 0) << nbd_get_error();
    const Bytes noise = [] {
      Random random(seed());
      Bytes bytes(4u << 20);
      for (std::byte& byte : bytes)
        byte = static_cast<std::byte>(random.next() >> 17);
      return bytes;
    }();
    do {
      ASSERT_EQ(client.write(kBallast + 1, noise), 0) << nbd_get_error();
      ASSERT_EQ(client.trim(kBallast, noise.size() + kPageSize), 0) << nbd_get_error();
    } while (arena.playing.load() != 0 || server.report().requests_pending == 0);
  });
}

}  // namespace
}  // namespace tuck::test

// Races of a server's workers, led by hand (base/sync_point.h): a worker is stopped inside a
// request while other clients, the background and the end of the server go on.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "tests/nbd/clients.h"
#include "tests/nbd/test_server.h"
#include "tests/support/schedule.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

class NbdSchedule : public Schedule {
 protected:
  // Two clients are given to two workers: each goes to the one that has the fewest.
  static TestServerOptions two_workers() {
    TestServerOptions options;
    options.server.workers = 2;
    return options;
  }
  static Bytes filled(size_t bytes, uint8_t with) {
    return Bytes(bytes, static_cast<std::byte>(with));
  }
  static Bytes noise(uint64_t of, size_t bytes) {
    Random random(of);
    Bytes out(bytes);
    for (std::byte& byte : out)
      byte = static_cast<std::byte>(random.next() >> 17);
    return out;
  }

  // one:   WRITE of bytes 100 … 199 ── page loaded and merged ───────────────── put in place
  // other:                             meanwhile(client) to the same page, answered
  //
  // What the other one did must be there, and so must the 100 bytes.
  static void merge_against(const std::function<void(Client&)>& meanwhile, const Bytes& expected) {
    TestServer server(two_workers());
    Client one;
    Client other;
    ASSERT_EQ(one.connect(server.unix_uri()), 0) << nbd_get_error();
    ASSERT_EQ(other.connect(server.unix_uri()), 0) << nbd_get_error();
    ASSERT_EQ(other.write(0, filled(kPageSize, 1)), 0);
    int error = -1;
    SyncStop merged("engine.store_if.prepared");
    Actor writer([&] { error = one.write(100, filled(100, 2)); });
    ASSERT_TRUE(merged.wait_until_reached());
    meanwhile(other);
    merged.let_go();
    writer.join();
    EXPECT_EQ(error, 0);
    EXPECT_TRUE(other.must_read(0, kPageSize) == expected);
  }
  // A page of one byte, with others in [from, to).
  static Bytes page_with(uint8_t base, std::initializer_list<std::array<uint32_t, 3>> parts) {
    Bytes page = filled(kPageSize, base);
    for (const auto& [from, to, with] : parts) {
      for (uint32_t at = from; at < to; ++at)
        page[at] = static_cast<std::byte>(with);
    }
    return page;
  }
};

TEST_F(NbdSchedule, AMergeAgainstAMergeOfOtherBytes) {
  merge_against([](Client& other) { EXPECT_EQ(other.write(3000, filled(9, 3)), 0); },
                page_with(1, {{100, 200, 2}, {3000, 3009, 3}}));
}
TEST_F(NbdSchedule, AMergeAgainstAWholePage) {
  merge_against([](Client& other) { EXPECT_EQ(other.write(0, filled(kPageSize, 3)), 0); },
                page_with(3, {{100, 200, 2}}));
}
TEST_F(NbdSchedule, AMergeAgainstATrim) {
  merge_against([](Client& other) { EXPECT_EQ(other.trim(0, kPageSize), 0); },
                page_with(0, {{100, 200, 2}}));
}
TEST_F(NbdSchedule, AMergeAgainstZeroesOfAWholePage) {
  merge_against(
      [](Client& other) { EXPECT_EQ(other.zero(0, kPageSize, LIBNBD_CMD_FLAG_NO_HOLE), 0); },
      page_with(0, {{100, 200, 2}}));
}
TEST_F(NbdSchedule, AMergeAgainstZeroesOfOtherBytes) {
  merge_against([](Client& other) { EXPECT_EQ(other.zero(200, 50), 0); },
                page_with(1, {{100, 200, 2}, {200, 250, 0}}));
}

// reader: READ of pages 0 … 3 ── page 1 found, not yet decoded ─────────── answered
// other:                           TRIM of all, then WRITE of all
//
// Each page as it was at one moment: none is refused, none is another's.
TEST_F(NbdSchedule, AReadAgainstATrimAndNewPages) {
  TestServer server(two_workers());
  Client one;
  Client other;
  ASSERT_EQ(one.connect(server.unix_uri()), 0) << nbd_get_error();
  ASSERT_EQ(other.connect(server.unix_uri()), 0) << nbd_get_error();
  const Bytes before = noise(seed(), 4 * kPageSize);
  const Bytes after = noise(seed() + 1, 4 * kPageSize);
  ASSERT_EQ(other.write(0, before), 0);
  Bytes seen(4 * kPageSize);
  int error = -1;
  SyncStop found("engine.load.entry_read", 1);
  Actor reader([&] { error = one.read(0, seen); });
  ASSERT_TRUE(found.wait_until_reached());
  EXPECT_EQ(other.trim(0, 4 * kPageSize), 0);
  server.engine().maintain();
  EXPECT_EQ(other.write(0, after), 0);
  found.let_go();
  reader.join();
  EXPECT_EQ(error, 0);
  for (size_t page = 0; page < 4; ++page) {
    const Bytes& expected = page < 2 ? before : after;
    const auto from = static_cast<std::ptrdiff_t>(page * kPageSize);
    EXPECT_TRUE(
        std::equal(seen.begin() + from, seen.begin() + from + kPageSize, expected.begin() + from))
        << "page " << page;
  }
}

// worker: WRITE finds no frames, its ticket waits ──────────────── is told pending, and parks
// test:                                              maintain: frames come, the ticket is let go
//
// The notification reaches the worker before it knows that it has to wait for one.
TEST_F(NbdSchedule, LetGoWhileTheWorkerIsStillInTheStore) {
  TestServerOptions options = two_workers();
  options.engine.background_thread = false;
  options.engine.empty_reserve = engine::EmptyReserve::wait;
  options.engine.reserve_bytes = 256u << 10;
  TestServer server(std::move(options));
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0) << nbd_get_error();
  const Bytes data = noise(seed(), 2u << 20);
  std::atomic<int> error{-1};
  SyncStop waits("engine.give_up.ticket_waits");
  Actor writer([&] { error = client.write(1, data); });
  ASSERT_TRUE(waits.wait_until_reached());
  server.engine().maintain();
  waits.let_go();
  // Further waits of the same request are let go by further rounds; the first must not be lost.
  if (!eventually([&] {
        server.engine().maintain();
        return error.load() != -1;
      })) {
    // Neither the client nor the server could be joined any more.
    std::fprintf(stderr, "the request waits for a notification that has been\n");
    std::_Exit(1);
  }
  writer.join();
  EXPECT_EQ(error.load(), 0);
  EXPECT_GE(server.report().requests_pending, 1u);
  EXPECT_TRUE(client.must_read(1, data.size()) == data);
}

// worker: WRITE prepared, nothing published ─────────────────── publishes, finds nobody to answer
// client:                                     hangs up
TEST_F(NbdSchedule, AClientThatGoesWhileItsWorkerIsInTheStore) {
  TestServer server(two_workers());
  SyncStop prepared("engine.store.prepared");
  {
    RawClient client(server.socket_path());
    ASSERT_TRUE(client.go());
    ASSERT_TRUE(client.send(request(1, 7, 0, kPageSize) + std::string(kPageSize, 'w')));
    ASSERT_TRUE(prepared.wait_until_reached());
  }
  Client other;
  ASSERT_EQ(other.connect(server.unix_uri()), 0) << nbd_get_error();
  EXPECT_TRUE(other.must_read(0, kPageSize) == filled(kPageSize, 0));
  prepared.let_go();
  EXPECT_TRUE(eventually([&] { return server.report().connections_now == 1; }));
  EXPECT_TRUE(other.must_read(0, kPageSize) == filled(kPageSize, 'w'));
}

// worker: WRITE prepared, nothing published ───────────────── publishes, answers, ends
// test:                                       stop() ──────────────────────────────── returns
//
// A request that was read in full is carried out before the server is gone.
TEST_F(NbdSchedule, StopWhileAWorkerIsInTheStore) {
  TestServer server(two_workers());
  RawClient client(server.socket_path());
  ASSERT_TRUE(client.go());
  SyncStop prepared("engine.store.prepared");
  ASSERT_TRUE(client.send(request(1, 7, 0, kPageSize) + std::string(kPageSize, 'w')));
  ASSERT_TRUE(prepared.wait_until_reached());
  std::atomic<bool> stopped{false};
  Actor stopper([&] {
    server.stop();
    stopped = true;
  });
  EXPECT_FALSE(stopped.load());
  prepared.let_go();
  stopper.join();
  EXPECT_EQ(client.receive(16), simple_reply(7));
  EXPECT_TRUE(client.closed_by_server());
  Bytes page(kPageSize);
  const AreaId disk = server.engine().stats().areas.at(0).id;
  ASSERT_EQ(server.engine().load(disk, SlotIndex{0}, 1, page.data()).code, Errc::ok);
  EXPECT_TRUE(page == filled(kPageSize, 'w'));
}

}  // namespace
}  // namespace tuck::test

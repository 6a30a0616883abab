// Requests that have to wait for room: the memory source holds back the frames that stores need.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

#include "tests/nbd/clients.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/test_server.h"
#include "tests/support/seed.h"
#include "tests/support/test_source.h"

namespace tuck::test {
namespace {

constexpr uint64_t kReserve = 256u << 10;

// Holds back the pool's frames, and only those: tables grow as ever.
class SlowPool final : public MemorySource {
 public:
  Result<std::byte*, Error> reserve(size_t bytes, const char* purpose) noexcept override {
    auto at = source_.reserve(bytes, purpose);
    if (at.ok() && std::string_view(purpose) == "the pool") {
      pool_ = *at;
      pool_end_ = *at + bytes;
    }
    return at;
  }
  void unreserve(std::byte* at, size_t bytes) noexcept override { source_.unreserve(at, bytes); }
  Errc populate(std::byte* at, size_t bytes) noexcept override {
    if (at >= pool_ && at < pool_end_) {
      std::unique_lock lock(mutex_);
      let_go_.wait(lock, [this] { return !holding_; });
    }
    return source_.populate(at, bytes);
  }
  void release(std::byte* at, size_t bytes) noexcept override { source_.release(at, bytes); }

  void hold() {
    const std::lock_guard lock(mutex_);
    ASSERT_NE(pool_, nullptr) << "no reservation is called \"the pool\"";
    holding_ = true;
  }
  void let_go() {
    {
      const std::lock_guard lock(mutex_);
      holding_ = false;
    }
    let_go_.notify_all();
  }

 private:
  TestSource source_;
  std::byte* pool_ = nullptr;
  std::byte* pool_end_ = nullptr;
  std::mutex mutex_;
  std::condition_variable let_go_;
  bool holding_ = false;
};

TestServerOptions waiting_for_reserve(SlowPool& source) {
  TestServerOptions options;
  options.engine.memory = &source;
  options.engine.reserve_bytes = kReserve;
  options.engine.empty_reserve = engine::EmptyReserve::wait;
  // One worker: whoever waits must not keep the others waiting.
  options.server.workers = 1;
  return options;
}

// Incompressible, so that it needs the frames.
Bytes noise(uint64_t of, size_t bytes) {
  Random random(of);
  Bytes out(bytes);
  for (std::byte& byte : out)
    byte = static_cast<std::byte>(random.next() >> 17);
  return out;
}

TEST(NbdWaiting, TwoConnectionsWaitAndBothGoOn) {
  SlowPool source;
  {
    TestServer server(waiting_for_reserve(source));
    Client first;
    Client second;
    Client reader;
    for (Client* client : {&first, &second, &reader}) {
      ASSERT_EQ(client->connect(server.unix_uri()), 0) << nbd_get_error();
    }
    source.hold();
    const Bytes before = noise(seed(), 4096);
    ASSERT_EQ(reader.write(40u << 20, before), 0);
    const Bytes data_one = noise(seed() + 1, 4 << 20);
    const Bytes data_two = noise(seed() + 2, 4 << 20);
    int error_one = -1;
    int error_two = -1;
    std::thread one([&] { error_one = first.write(1, data_one); });
    std::thread two([&] { error_two = second.write((8u << 20) + 1, data_two); });
    EXPECT_TRUE(eventually([&] { return server.report().requests_pending == 2; }));
    // Meanwhile the worker has time for others.
    EXPECT_EQ(reader.must_read(40u << 20, 4096), before);
    EXPECT_EQ(reader.flush(), 0);
    source.let_go();
    one.join();
    two.join();
    EXPECT_EQ(error_one, 0);
    EXPECT_EQ(error_two, 0);
    EXPECT_TRUE(reader.must_read(1, data_one.size()) == data_one);
    EXPECT_TRUE(reader.must_read((8u << 20) + 1, data_two.size()) == data_two);
  }
}

// A WRITE_ZEROES that waits, behind it more READs than may be ahead of it, whose replies nobody
// takes: the worker has stopped for want of room while the ticket is out. Whatever comes first, the
// ticket or the client's end, the place is not given to another client before both have.
class ATicketThatIsOut : public testing::Test {
 protected:
  static constexpr uint64_t kFilled = 48u << 20;
  static constexpr uint32_t kLong = 256u << 10;
  static constexpr uint32_t kShortReads = 64;
  static constexpr uint32_t kLongReads = 60;

  void wait_with(RawClient& client, RawClient& filler) {
    source_.hold();
    const auto write = [&](uint64_t cookie, uint64_t offset) {
      const Bytes data = noise(seed() + cookie, 4096);
      return filler.send(request(1, cookie, offset, 4096)) &&
             filler.send({reinterpret_cast<const char*>(data.data()), data.size()});
    };
    for (uint64_t i = 0; i < 3; ++i)
      ASSERT_TRUE(write(i, kFilled + i * 4096));
    for (uint64_t writes = 3; server_.report().requests_pending == 0; ++writes) {
      ASSERT_LT(writes, 1000u) << "the reserve has no end";
      ASSERT_TRUE(write(writes, writes * 4096));
      ASSERT_TRUE(eventually([&] {
        return server_.report().requests_pending != 0 ||
               server_.operation("write").requests == writes + 1;
      }));
    }
    // Its edges are merged with pages of noise, which takes room.
    std::string burst = request(6, 900, kFilled + 100, 2 * 4096);
    for (uint32_t i = 0; i < kShortReads; ++i)
      burst += request(0, 1000 + i, 32u << 20, 0);
    for (uint32_t i = 0; i < kLongReads; ++i)
      burst += request(0, 2000 + i, 32u << 20, kLong);
    ASSERT_TRUE(client.send(burst));
    ASSERT_TRUE(eventually([&] {
      return server_.report().requests_pending == 2 &&
             server_.operation("read").requests >= kShortReads;
    }));
  }

  SlowPool source_;
  TestServer server_{waiting_for_reserve(source_)};
};

TEST_F(ATicketThatIsOut, ComesBackToAWorkerThatWantsRoom) {
  RawClient client(server_.socket_path());
  RawClient filler(server_.socket_path());
  ASSERT_TRUE(client.go() && filler.go());
  wait_with(client, filler);
  source_.let_go();
  const size_t all = 16 + size_t{kShortReads} * 16 + size_t{kLongReads} * (16 + kLong);
  EXPECT_EQ(client.receive(all).size(), all);
  EXPECT_EQ(server_.operation("write_zeroes").errors, 0u);
}

TEST_F(ATicketThatIsOut, ComesBackToAClientThatIsGone) {
  RawClient client(server_.socket_path());
  RawClient filler(server_.socket_path());
  ASSERT_TRUE(client.go() && filler.go());
  wait_with(client, filler);
  client.hang_up();
  Client meanwhile;
  ASSERT_EQ(meanwhile.connect(server_.unix_uri()), 0) << nbd_get_error();
  source_.let_go();
  EXPECT_TRUE(eventually([&] { return server_.report().connections_now == 2; }));
  filler.hang_up();
  EXPECT_TRUE(eventually([&] { return server_.report().connections_now == 1; }));
  Client other;
  Client another;
  EXPECT_EQ(other.connect(server_.unix_uri()), 0);
  EXPECT_EQ(another.connect(server_.unix_uri()), 0);
  EXPECT_EQ(meanwhile.flush(), 0);
}

// On one connection: READs pass the WRITE that waits, also those that come while it does.
TEST(NbdWaiting, ReadsPassAWriteThatWaits) {
  SlowPool source;
  {
    TestServer server(waiting_for_reserve(source));
    RawClient client(server.socket_path());
    ASSERT_TRUE(client.go());
    source.hold();
    constexpr uint32_t kBytes = 128u << 10;
    uint64_t writes = 0;
    while (server.report().requests_pending == 0) {
      ASSERT_LT(writes, 100u) << "the reserve has no end";
      const Bytes data = noise(seed() + writes, kBytes);
      ASSERT_TRUE(client.send(request(1, writes, writes * kBytes, kBytes)));
      ASSERT_TRUE(client.send({reinterpret_cast<const char*>(data.data()), data.size()}));
      ++writes;
      // Either it is answered or it waits.
      ASSERT_TRUE(eventually([&] {
        return server.report().requests_pending != 0 ||
               server.operation("write").requests == writes;
      }));
    }
    std::string expected;
    for (uint64_t i = 0; i + 1 < writes; ++i)
      expected += simple_reply(i);
    EXPECT_EQ(client.receive(expected.size()), expected);
    const uint64_t waiting = writes - 1;
    const std::string nothing(4096, '\0');
    for (uint64_t cookie = 500; cookie < 510; ++cookie) {
      ASSERT_TRUE(client.send(request(0, cookie, (32u << 20) + cookie, 4096)));
      EXPECT_EQ(client.receive(16 + 4096), simple_reply(cookie) + nothing);
    }
    const Bytes last = noise(seed() + waiting, kBytes);
    ASSERT_TRUE(client.send(request(0, 600, waiting * kBytes, kBytes) + request(0, 601, 0, 0)));
    EXPECT_EQ(client.receive(16), simple_reply(601));
    source.let_go();
    EXPECT_EQ(client.receive(16), simple_reply(waiting));
    EXPECT_EQ(client.receive(16), simple_reply(600));
    EXPECT_TRUE(client.receive(kBytes) ==
                std::string(reinterpret_cast<const char*>(last.data()), last.size()));
  }
}

TEST(NbdWaiting, ARequestThatWaitsIsNoClientThatHasStalled) {
  SlowPool source;
  TestServerOptions options = waiting_for_reserve(source);
  options.server.stall.request = std::chrono::milliseconds(50);
  options.server.stall.reply = std::chrono::milliseconds(50);
  TestServer server(std::move(options));
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0) << nbd_get_error();
  source.hold();
  const Bytes data = noise(seed(), 4 << 20);
  int error = -1;
  std::thread writer([&] { error = client.write(1, data); });
  EXPECT_TRUE(eventually([&] { return server.report().requests_pending == 1; }));
  // Many times both limits.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  source.let_go();
  writer.join();
  EXPECT_EQ(error, 0);
  EXPECT_TRUE(client.must_read(1, data.size()) == data);
  EXPECT_EQ(server.report().connections_broken, 0u);
}

TEST(NbdWaiting, AClientMayVanishWhileItsRequestWaits) {
  SlowPool source;
  {
    TestServer server(waiting_for_reserve(source));
    RawClient client(server.socket_path());
    ASSERT_TRUE(client.go());
    source.hold();
    const Bytes data = noise(seed(), 2 << 20);
    ASSERT_TRUE(client.send(request(1, 1, 0, 2 << 20)));
    std::thread sender([&] {
      client.send({reinterpret_cast<const char*>(data.data()), data.size()});
    });
    EXPECT_TRUE(eventually([&] { return server.report().requests_pending == 1; }));
    client.send_no_more();
    sender.join();
    client.hang_up();
    source.let_go();
    EXPECT_TRUE(eventually([&] { return server.report().connections_now == 0; }));
    Client other;
    ASSERT_EQ(other.connect(server.unix_uri()), 0);
    EXPECT_EQ(other.write(123, data), 0);
    EXPECT_TRUE(other.must_read(123, data.size()) == data);
  }
}

TEST(NbdWaiting, StopWaitsForTheTicketNotForTheClient) {
  SlowPool source;
  {
    TestServer server(waiting_for_reserve(source));
    Client client;
    ASSERT_EQ(client.connect(server.unix_uri()), 0);
    source.hold();
    const Bytes data = noise(seed(), 128 << 10);
    int error = -1;
    std::thread writer([&] {
      // Less than a receive: read in full when the server is told to stop.
      for (uint64_t at = 0; error <= 0 && at < (32u << 20); at += data.size()) {
        error = client.write(at, data);
      }
    });
    EXPECT_TRUE(eventually([&] { return server.report().requests_pending == 1; }));
    std::thread stopper([&] { server.stop(); });
    source.let_go();
    stopper.join();
    writer.join();
    EXPECT_EQ(server.report().connections_now, 0u);
  }
}

}  // namespace
}  // namespace tuck::test

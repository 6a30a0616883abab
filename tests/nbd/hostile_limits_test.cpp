// The bounds on what clients may hold, each made small: what is over it ends, and is counted; what
// is within it goes on.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "frontends/nbd/protocol.h"
#include "tests/nbd/exports.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/hostile.h"

namespace tuck::test {
namespace {

using nbd::Option;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class HostileLimits : public HostileTest {
 protected:
  template <class Change>
  void start_with(Change change) {
    TestServerOptions options = small_disk();
    options.disk_bytes = 16u << 20;
    change(options.server);
    start(std::move(options));
  }
  std::unique_ptr<RawClient> saying(const std::string& options) {
    auto client = greeted(path());
    client->send(client_flags() + options);
    return client;
  }
};

// --- Bytes in flight ---------------------------------------------------------------------------

TEST_F(HostileLimits, WhoFindsNoBuffersLeftIsToldSoAndMayTryAgain) {
  start_with([](nbd::ServerOptions& options) {
    // Room for two clients, and not quite for three.
    options.in_flight_bytes_max = 3 * nbd::in_flight_bytes_a_client() - 1;
  });
  EXPECT_EQ(server().report().in_flight_bytes_max, 2 * nbd::in_flight_bytes_a_client());
  auto second = serving(path());
  const std::string go = option(Option::go, info_data(""));
  const auto third = saying(option(Option::info, info_data("")) + go);
  EXPECT_EQ(hear(*third, 3), "INFO ACK POLICY");
  EXPECT_TRUE(negotiation_in_step(*third));
  EXPECT_TRUE(saying(option(Option::export_name, ""))->closed_without_a_word());
  EXPECT_EQ(server().report().entries_refused, 2u);
  EXPECT_TRUE(in_step(*second)) << "the one that is there notices nothing";
  second.reset();
  ASSERT_TRUE(eventually(
      [&] { return server().report().in_flight_bytes == nbd::in_flight_bytes_a_client(); }));
  ASSERT_TRUE(third->send(go));
  EXPECT_EQ(hear(*third, 2), "INFO ACK");
  EXPECT_TRUE(in_step(*third));
}

TEST_F(HostileLimits, FloodersUseTheirOwnBuffersAndNoMore) {
  start_with([](nbd::ServerOptions&) {});
  std::vector<std::unique_ptr<RawClient>> flooders;
  std::string reads;
  for (uint64_t i = 0; i < 1000; ++i)
    reads += request(kRead, i, 0, 256u << 10);
  for (int i = 0; i < 8; ++i) {
    flooders.push_back(serving(path()));
    flooders.back()->send_some(reads);
  }
  // They wait with full buffers on both sides; the others do not.
  expect_well();
  EXPECT_TRUE(eventually(
      [&] { return server().report().in_flight_bytes == 9 * nbd::in_flight_bytes_a_client(); }));
  // How much a flooder gets rid of is bounded: its receive buffer, the request being worked on, and
  // the kernel's socket buffers (of both directions, 1 MiB at most each).
  const auto writer = serving(path());
  std::string writes;
  for (uint64_t i = 0; i < 64; ++i)
    writes += request(kRead, i, 0, 1u << 20);
  ASSERT_TRUE(writer->send(writes));  // 64 MiB of replies, never taken
  const std::string padding(1u << 20, '\0');
  size_t taken = 0;
  for (size_t now = 1; now != 0 && taken < (256u << 20); taken += now)
    now = writer->send_some(padding);
  EXPECT_LT(taken, 4u << 20);
  expect_well();
}

// --- Negotiation -------------------------------------------------------------------------------

TEST_F(HostileLimits, TheNumberOfOptions) {
  start_with([](nbd::ServerOptions& options) { options.negotiation.options_max = 5; });
  std::string lists;
  for (int i = 0; i < 6; ++i)
    lists += option(Option::structured_reply);
  const auto client = saying(lists);
  EXPECT_EQ(hear(*client, 5), "ACK ACK ACK ACK ACK");
  EXPECT_TRUE(client->closed_without_a_word());
  EXPECT_TRUE(eventually([&] { return server().report().negotiations_over_limits == 1; }));
  EXPECT_EQ(server().report().negotiations_failed, 1u);
}

TEST_F(HostileLimits, TheBytesOfOneOptionAndOfAll) {
  start_with([](nbd::ServerOptions& options) {
    options.negotiation.option_bytes_max = 1000;
    options.negotiation.bytes_max = 2500;
  });
  const std::string most = option(0x7654321, std::string(1000, 'x'));
  const auto one = saying(most + option(0x7654321, std::string(1001, 'x')));
  EXPECT_EQ(hear(*one, 1), "UNSUP");
  EXPECT_TRUE(one->closed_without_a_word());
  const auto all = saying(most + most + most);
  EXPECT_EQ(hear(*all, 2), "UNSUP UNSUP");
  EXPECT_TRUE(all->closed_without_a_word());
  EXPECT_TRUE(eventually([&] { return server().report().negotiations_over_limits == 2; }));
}

TEST_F(HostileLimits, AByteAtATimeIsNoWayToNegotiateForever) {
  start_with([](nbd::ServerOptions& options) { options.negotiation_time_max = milliseconds(400); });
  const auto client = greeted(path());
  const std::string endless = client_flags() + option(0x7654321, std::string(100'000, 'x'));
  size_t sent = 0;
  while (sent < endless.size() && client->send(endless.substr(sent, 1))) {
    ++sent;
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_LT(sent, endless.size());
  EXPECT_TRUE(eventually([&] { return server().report().negotiations_timed_out == 1; }));
  EXPECT_EQ(server().report().negotiations_failed, 1u);
}

// --- Clients that stop in the middle -------------------------------------------------------------

TEST_F(HostileLimits, WhoStopsInTheMiddleOfARequestIsClosed) {
  start_with([](nbd::ServerOptions& options) { options.stall.request = milliseconds(200); });
  const std::string write = request(kWrite, 1, 0, 300'000);
  // In the header; before the payload; in the payload, also in that of a request that is refused.
  std::vector<std::unique_ptr<RawClient>> clients;
  for (const std::string& sent :
       {write.substr(0, 1), write.substr(0, 27), write, write + std::string(100'000, 'x'),
        request(kWrite, 1, 1u << 30, 4096) + std::string(4095, 'x'),
        request(kFlush, 1, 0, 0) + write.substr(0, 4)}) {
    clients.push_back(serving(path()));
    ASSERT_TRUE(clients.back()->send(sent));
  }
  for (const auto& client : clients)
    EXPECT_TRUE(client->closed_by_server());
  EXPECT_TRUE(eventually([&] { return server().report().stalled_requests == clients.size(); }));
  EXPECT_EQ(server().report().connections_broken, clients.size());
  EXPECT_EQ(server().report().stalled_replies, 0u);
}

TEST_F(HostileLimits, WithoutALimitAClientMayStopAsLongAsItLikes) {
  EXPECT_EQ(nbd::ServerOptions().stall.request.count(), 0);
  EXPECT_EQ(nbd::ServerOptions().stall.reply.count(), 0);
  start_with([](nbd::ServerOptions& options) { options.negotiation_time_max = milliseconds(100); });
  const auto client = serving(path());
  const std::string write = request(kWrite, 1, 0, 4096) + std::string(4096, 'x');
  ASSERT_TRUE(client->send(write.substr(0, 1000)));
  std::this_thread::sleep_for(milliseconds(500));
  ASSERT_TRUE(client->send(write.substr(1000)));
  EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(1));
}

TEST_F(HostileLimits, WhoIsIdleBetweenTwoRequestsIsNeverClosed) {
  start_with([](nbd::ServerOptions& options) {
    options.stall.request = milliseconds(50);
    options.stall.reply = milliseconds(50);
    options.negotiation_time_max = milliseconds(50'000);
  });
  const auto client = serving(path());
  EXPECT_TRUE(in_step(*client));
  std::this_thread::sleep_for(milliseconds(1000));
  EXPECT_TRUE(in_step(*client));
  EXPECT_EQ(server().report().connections_broken, 0u);
}

// The longest pause that this thread has made between two steps: on a machine that is busy with
// something else it may be anything.
class Pauses {
 public:
  void step() {
    const Clock::time_point now = Clock::now();
    longest_ = std::max(longest_, now - last_);
    last_ = now;
  }
  Clock::duration longest() const { return longest_; }

 private:
  Clock::time_point last_ = Clock::now();
  Clock::duration longest_{};
};

TEST_F(HostileLimits, AByteAtATimeIsServedWhileEachComesInTime) {
  constexpr milliseconds kLimit{1500};
  start_with([&](nbd::ServerOptions& options) { options.stall.request = kLimit; });
  const std::string write = request(kWrite, 1, 0, 20) + std::string(20, 'x');
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto client = serving(path());
    Pauses pauses;
    for (const char& byte : write) {
      client->send(std::string_view(&byte, 1));
      pauses.step();
      std::this_thread::sleep_for(milliseconds(40));  // 48 times: more than the limit
    }
    if (pauses.longest() > kLimit / 2) continue;  // this machine's fault, so it says nothing
    EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(1));
    return;
  }
  GTEST_SKIP() << "this machine is too busy to send a byte every " << (kLimit / 2).count() << " ms";
}

TEST_F(HostileLimits, WhoTakesNoRepliesIsClosed) {
  start_with([](nbd::ServerOptions& options) { options.stall.reply = milliseconds(200); });
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(serving(path()));
    // More than the socket takes: one reply in pieces, many whole ones, or chunks.
    ASSERT_TRUE(clients.back()->send(request(kRead, 1, 0, 16u << 20)));
  }
  EXPECT_TRUE(eventually([&] { return server().report().stalled_replies == 3; }));
  EXPECT_EQ(server().report().connections_broken, 3u);
  EXPECT_TRUE(all_gone()) << "what was queued for them is thrown away at once";
}

TEST_F(HostileLimits, WhoTakesItsRepliesSlowlyIsServed) {
  constexpr milliseconds kLimit{1500};
  start_with([&](nbd::ServerOptions& options) { options.stall.reply = kLimit; });
  constexpr size_t kBytes = 12u << 20;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto client = serving(path());
    ASSERT_TRUE(client->send(request(kRead, 1, 0, kBytes)));
    Pauses pauses;
    constexpr size_t kAll = nbd::kSimpleReplyBytes + kBytes;
    size_t got = 0;
    while (got < kAll) {
      const size_t piece = client->receive(std::min<size_t>(256u << 10, kAll - got)).size();
      if (piece == 0) break;
      got += piece;
      pauses.step();
      std::this_thread::sleep_for(milliseconds(45));  // 48 times: more than the limit
    }
    if (pauses.longest() > kLimit / 2) continue;
    EXPECT_EQ(got, kAll);
    return;
  }
  GTEST_SKIP() << "this machine is too busy to take some bytes every " << (kLimit / 2).count()
               << " ms";
}

// --- Users -------------------------------------------------------------------------------------

constexpr uid_t kNobody = 65534;
constexpr uid_t kSomebody = 6553;

// Connects as this user in a process of its own: whether the server said hello.
bool greeted_as(uid_t user, const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    // Only system calls here: other threads may have held any lock.
    char byte = 0;
    if (setuid(user) != 0) _exit(3);
    const int fd = connected(path);
    if (fd < 0) _exit(4);
    _exit(read(fd, &byte, 1) == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << "status " << status;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class HostileUsers : public HostileLimits {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  }
  // As an inherited socket, or one that somebody has opened to all, may be.
  void open_to_all() {
    ASSERT_EQ(chmod(path().c_str(), 0666), 0);
    ASSERT_EQ(chmod(path().substr(0, path().rfind('/')).c_str(), 0711), 0);
  }
};

TEST_F(HostileUsers, OnlyTheServersOwnAndRootMayConnect) {
  start_with([](nbd::ServerOptions&) {});
  open_to_all();
  EXPECT_FALSE(greeted_as(kNobody, path()));
  EXPECT_FALSE(greeted_as(kSomebody, path()));
  EXPECT_TRUE(greeted_as(0, path()));
  EXPECT_EQ(server().report().peers_refused, 2u);
  EXPECT_EQ(server().report().connections_refused, 0u);
}

TEST_F(HostileUsers, AllowedOnesAreKnownByTheirWholeNumber) {
  start_with([](nbd::ServerOptions& options) { options.peers.users = {kSomebody}; });
  open_to_all();
  EXPECT_TRUE(greeted_as(kSomebody, path()));
  EXPECT_FALSE(greeted_as(kNobody, path())) << "65534 begins like 6553";
  EXPECT_FALSE(greeted_as(655, path()));
  EXPECT_EQ(server().report().peers_refused, 2u);
}

TEST_F(HostileUsers, AnybodyOnRequest) {
  start_with([](nbd::ServerOptions& options) { options.peers.any_user = true; });
  open_to_all();
  EXPECT_TRUE(greeted_as(kNobody, path()));
  EXPECT_EQ(server().report().peers_refused, 0u);
}

// --- Options that cannot be --------------------------------------------------------------------

TEST(HostileLimitOptions, AreRefusedWithWords) {
  const auto refused = [](auto change) {
    nbd::ServerOptions options;
    options.exports = Exports::pair();
    nbd::ListenAddress address;
    address.tcp_host = "127.0.0.1";
    address.tcp_port = 0;
    options.listen = {address};
    change(options);
    const auto server = nbd::Server::start(std::move(options));
    return !server.ok() && !server.error().message.empty();
  };
  using Options = nbd::ServerOptions;
  EXPECT_FALSE(refused([](Options&) {}));
  EXPECT_TRUE(refused([](Options& o) { o.in_flight_bytes_max = 1; }));
  EXPECT_TRUE(
      refused([](Options& o) { o.in_flight_bytes_max = nbd::in_flight_bytes_a_client() - 1; }));
  EXPECT_TRUE(refused([](Options& o) { o.negotiation.options_max = 0; }));
  EXPECT_TRUE(refused([](Options& o) { o.negotiation.bytes_max = 0; }));
  EXPECT_TRUE(refused([](Options& o) { o.negotiation_time_max = milliseconds(0); }));
  EXPECT_TRUE(refused([](Options& o) { o.stall.request = milliseconds(-1); }));
  EXPECT_TRUE(refused([](Options& o) { o.stall.reply = milliseconds(-1); }));
}

}  // namespace
}  // namespace tuck::test

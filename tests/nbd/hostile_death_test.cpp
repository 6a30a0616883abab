// Clients that die: at every byte of what they say, with replies under way, or all at once.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

#include "frontends/nbd/protocol.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/hostile.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

using nbd::Option;

// How a client goes: at once, as the kernel does it for one that was killed; after it has said that
// it will send no more; or with something unread, which makes it a reset.
enum class Death { closed, half_closed, unread };

class HostileDeath : public HostileTest {
 protected:
  void SetUp() override {
    TestServerOptions options = small_disk();
    // Clients die faster than the server buries them.
    options.server.connections_max = 4096;
    start(std::move(options));
  }

  // One client for each length, cut short there.
  void die_at_every_byte(const std::string& before, const std::string& session, Death death) {
    for (size_t length = 0; length <= session.size(); ++length) {
      const auto client = std::make_unique<RawClient>(path());
      ASSERT_TRUE(client->send(before + session.substr(0, length)));
      if (death == Death::unread) client->receive(1);
      if (death == Death::half_closed) {
        client->send_no_more();
        ASSERT_TRUE(client->closed_by_server()) << "after " << length << " bytes";
      }
      client->hang_up();
    }
    ASSERT_TRUE(all_gone());
    expect_well();
  }
};

std::string whole_negotiation() {
  return client_flags() + option(Option::list) + option(Option::structured_reply) +
         option(0x7654321, "nobody") + option(Option::start_tls) +
         option(Option::info, info_data("disk", {0, 1, 2, 3})) + option(Option::go, "short") +
         option(Option::list_meta_context, meta_data("disk", {})) +
         option(Option::set_meta_context, meta_data("disk", {"base:allocation"})) +
         option(Option::go, info_data("disk", {3}));
}

std::string every_request() {
  const std::string page(64, 'd');
  return request(kWrite, 1, 4090, 64) + page + request(kRead, 2, 4000, 200) +
         request(kWriteZeroes, 3, 100, 9000) + request(kTrim, 4, 0, 65'536) +
         request(kFlush, 5, 0, 0) + request(kCache, 6, 0, 4096) +
         request(kBlockStatus, 7, 0, 1u << 20) + request(kWrite, 8, 64u << 20, 64) + page +
         request(kRead, 9, 64u << 20, 64) + request(kDisconnect, 10, 0, 0);
}

TEST_F(HostileDeath, AtEveryByteOfTheNegotiation) {
  for (const Death death : {Death::closed, Death::half_closed, Death::unread})
    die_at_every_byte("", whole_negotiation(), death);
}

TEST_F(HostileDeath, AtEveryByteOfEveryRequest) {
  for (const Death death : {Death::closed, Death::half_closed, Death::unread})
    die_at_every_byte(hello_and_go(), every_request(), death);
}

TEST_F(HostileDeath, AtEveryByteOfEveryRequestWithStructuredReplies) {
  for (const Death death : {Death::closed, Death::unread})
    die_at_every_byte(whole_negotiation(), every_request(), death);
}

// What was written whole stays written, and the part of a request that had come is on the page or
// not, byte by byte: nothing else is.
TEST_F(HostileDeath, InTheMiddleOfAPayloadNothingElseIsTouched) {
  Client reader;
  ASSERT_EQ(reader.connect(server().unix_uri()), 0);
  constexpr size_t kBytes = 300'000;
  constexpr uint64_t kAt = 5000;
  const Bytes before(kBytes + 2 * kAt, std::byte{'b'});
  Random random(seed());
  for (uint32_t i = 0; i < scaled(40); ++i) {
    ASSERT_EQ(reader.write(0, before), 0);
    const auto client = serving(path());
    const size_t sent = random.below(kBytes);
    ASSERT_TRUE(client->send(request(kWrite, 1, kAt, kBytes) + std::string(sent, 'n')));
    client->hang_up();
    ASSERT_TRUE(eventually([&] { return server().report().connections_serving == 2; }));
    const Bytes now = reader.must_read(0, before.size());
    for (size_t at = 0; at < now.size(); ++at) {
      const bool may_be_new = at >= kAt && at < kAt + sent;
      ASSERT_TRUE(now[at] == std::byte{'b'} || (may_be_new && now[at] == std::byte{'n'}))
          << "byte " << at << " after " << sent << " were sent";
    }
  }
}

TEST_F(HostileDeath, WithRepliesQueuedThatNobodyTakes) {
  Client writer;
  ASSERT_EQ(writer.connect(server().unix_uri()), 0);
  ASSERT_EQ(writer.write(0, random_bytes(seed(), 1'500'000)), 0);
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 10; ++i) {
      clients.push_back(i % 2 == 0 ? serving(path()) : serving_structured(path()));
      std::string reads;
      for (uint64_t n = 0; n < 100; ++n)
        reads += request(kRead, n, 4096 * n, 1u << 20);
      clients.back()->send_some(reads);
    }
    expect_well();
    while (!clients.empty()) {
      if (clients.size() % 3 == 0) clients.back()->receive(10'000);
      clients.pop_back();
    }
    ASSERT_TRUE(eventually([&] { return server().report().connections_now == 2; }));
  }
}

TEST_F(HostileDeath, ManyAtOnce) {
  std::vector<std::jthread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, random = Random(mix(seed(), t))]() mutable {
      const std::string session = hello_and_go() + every_request();
      for (uint32_t i = 0; i < scaled(500); ++i) {
        const int fd = connected(path());
        ASSERT_GE(fd, 0);
        RawClient client(fd);
        client.send(session.substr(0, random.below(session.size() + 1)));
        if (random.one_in(3)) client.receive(random.below(18));
      }
    });
  }
  threads.clear();
  ASSERT_TRUE(all_gone());
}

}  // namespace
}  // namespace tuck::test

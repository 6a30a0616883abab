// What a server answers to clients that do not keep to the protocol: every row of the table that
// the protocol's notes have of it (tests/nbd/README.md lists them), through a bare socket, against
// what the last column of that table asks for.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "frontends/nbd/protocol.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/hostile.h"

namespace tuck::test {
namespace {

using nbd::Option;

class HostileTable : public HostileTest {
 protected:
  void SetUp() override { start(); }

  // Said behind the greeting and the flags.
  std::unique_ptr<RawClient> saying(const std::string& options) {
    auto client = greeted(path());
    EXPECT_TRUE(client->send(client_flags() + options));
    return client;
  }
  // A request that is refused, and the connection goes on.
  void expect_refused(const std::string& sent, uint64_t cookie, uint32_t error) {
    const auto client = serving(path());
    EXPECT_TRUE(client->send(sent));
    EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(cookie, error));
    EXPECT_TRUE(in_step(*client));
  }
};

TEST_F(HostileTable, UnknownClientFlagIsClosed) {
  const auto client = greeted(path());
  ASSERT_TRUE(client->send(client_flags(kBothFlags | 1u << 7)));
  EXPECT_TRUE(client->closed_by_server());
}

TEST_F(HostileTable, ListWithoutFixedNewstyleIsClosed) {
  const auto client = greeted(path());
  ASSERT_TRUE(client->send(client_flags(0) + option(Option::list)));
  EXPECT_TRUE(client->closed_without_a_word()) << "closed; or ERR_INVALID, which we do not say";
}

TEST_F(HostileTable, BadOptionMagicIsClosed) {
  std::string bad = option(Option::list);
  bad[0] = 'X';
  EXPECT_TRUE(saying(bad)->closed_without_a_word());
}

TEST_F(HostileTable, ListOfFourGigabytesIsClosedBeforeItComes) {
  EXPECT_TRUE(saying(option(Option::list, "", 0xffffffff))->closed_without_a_word());
  EXPECT_TRUE(eventually([&] { return server().report().negotiations_over_limits == 1; }));
}

TEST_F(HostileTable, LongUnknownOptionIsSkipped) {
  const auto client = saying(option(0x7654321, std::string(100'000, 'x')) + option(Option::abort));
  EXPECT_EQ(hear(*client, 2), "UNSUP ACK");
  EXPECT_TRUE(client->closed_by_server());
}

TEST_F(HostileTable, GoWithANameThatIsTooLongIsInvalid) {
  for (const uint32_t claimed : {0xffffffffu, 5000u}) {
    const auto client = saying(option(Option::go, be32(claimed) + "disk" + be16(0)));
    EXPECT_EQ(hear(*client, 1), "INVALID");
    EXPECT_TRUE(negotiation_in_step(*client));
  }
  const auto client = saying(option(Option::go, info_data(std::string(5000, 'n'))));
  EXPECT_EQ(hear(*client, 1), "INVALID");
  EXPECT_TRUE(negotiation_in_step(*client));
}

TEST_F(HostileTable, GoWithALongUnknownNameIsUnknown) {
  const auto client = saying(option(Option::go, info_data(std::string(3000, 'n'))));
  EXPECT_EQ(hear(*client, 1), "UNKNOWN");
  EXPECT_TRUE(negotiation_in_step(*client));
}

TEST_F(HostileTable, GoThatClaimsInfosItDoesNotSendIsInvalid) {
  const auto client = saying(option(Option::go, length_and_text("disk") + be16(500)));
  EXPECT_EQ(hear(*client, 1), "INVALID") << "at once: nothing more is waited for";
  EXPECT_TRUE(negotiation_in_step(*client));
}

TEST_F(HostileTable, NameWithANulIsInvalid) {
  const auto client = saying(option(Option::go, info_data(std::string("di\0sk", 5))));
  EXPECT_EQ(hear(*client, 1), "INVALID");
  EXPECT_TRUE(negotiation_in_step(*client));
}

TEST_F(HostileTable, FourHundredListsExceedTheBudget) {
  std::string lists;
  for (int i = 0; i < 400; ++i)
    lists += option(Option::list);
  const auto client = saying("");
  client->send(lists);  // the server may close before it has all of it
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(hear(*client, 3), "SERVER SERVER ACK") << i;
  EXPECT_TRUE(client->closed_by_server());
  EXPECT_TRUE(eventually([&] { return server().report().negotiations_over_limits == 1; }));
}

TEST_F(HostileTable, ListMetaContextBeforeStructuredRepliesIsInvalid) {
  const auto client = saying(option(Option::list_meta_context, meta_data("disk", {})));
  EXPECT_EQ(hear(*client, 1), "INVALID");
  EXPECT_TRUE(negotiation_in_step(*client));
}

TEST_F(HostileTable, StructuredRepliesTwiceIsFine) {
  const auto client = saying(option(Option::structured_reply) + option(Option::structured_reply));
  EXPECT_EQ(hear(*client, 2), "ACK ACK");
  EXPECT_TRUE(negotiation_in_step(*client));
}

TEST_F(HostileTable, ExtendedHeadersAreUnsupported) {
  const auto client = saying(option(Option::extended_headers) + option(Option::go, info_data("")));
  EXPECT_EQ(hear(*client, 3), "UNSUP INFO ACK");
  EXPECT_TRUE(in_step(*client)) << "with the headers that there are";
}

TEST_F(HostileTable, ReadAndWriteOfNothingSucceed) {
  const auto client = serving(path());
  for (const uint16_t command : {kRead, kWrite}) {
    ASSERT_TRUE(client->send(request(command, 5, 4096, 0)));
    EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(5));
  }
  EXPECT_TRUE(in_step(*client));
}

TEST_F(HostileTable, ReadPastTheEndIsInvalid) {
  const uint64_t size = 4u << 20;
  expect_refused(request(kRead, 1, size - 4095, 4096), 1, EINVAL);
  expect_refused(request(kRead, 2, size, 1), 2, EINVAL);
  expect_refused(request(kRead, 3, size + 1, 0), 3, EINVAL);
}

TEST_F(HostileTable, ReadThatWrapsIsInvalid) {
  expect_refused(request(kRead, 1, UINT64_MAX - 4095, 4096), 1, EINVAL);
  expect_refused(request(kRead, 2, UINT64_MAX, 0xffffffff), 2, EINVAL);
  expect_refused(request(kRead, 3, UINT64_MAX - 1, 2), 3, EINVAL);
}

TEST_F(HostileTable, WritePastTheEndIsNoSpaceAndItsPayloadIsSkipped) {
  const uint64_t size = 4u << 20;
  for (const uint64_t offset : {size - 4095, size, UINT64_MAX - 4095}) {
    const auto client = serving(path());
    ASSERT_TRUE(client->send(request(kWrite, 1, 0, 4096) + std::string(4096, 'o') +
                             request(kWrite, 2, offset, 4096) + std::string(4096, '\x25')));
    EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(1));
    EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(2, ENOSPC));
    ASSERT_TRUE(client->send(request(kRead, 3, 0, 4096)));
    EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(3));
    EXPECT_EQ(client->receive(4096), std::string(4096, 'o'));
    EXPECT_TRUE(in_step(*client));
  }
}

TEST_F(HostileTable, ReadOfMoreThanTheDiskIsInvalid) {
  expect_refused(request(kRead, 1, 0, 33u << 20), 1, EINVAL);
}

TEST_F(HostileTable, WriteOfFourGigabytesIsClosed) {
  const auto client = serving(path());
  ASSERT_TRUE(client->send(request(kWrite, 1, 0, 0xffffffff)));
  EXPECT_TRUE(client->closed_without_a_word());
  EXPECT_TRUE(eventually([&] { return server().report().connections_broken == 1; }));
}

TEST_F(HostileTable, UnknownCommandIsInvalid) {
  for (const uint16_t command : {uint16_t{8}, uint16_t{77}, uint16_t{0xffff}}) {
    expect_refused(request(command, 1, 0, 4096), 1, EINVAL);
  }
}

TEST_F(HostileTable, UnknownCommandFlagIsInvalid) {
  // FUA (bit 0) is right everywhere; bit 2 is DF, which needs structured replies.
  for (unsigned bit = 1; bit < 16; ++bit) {
    SCOPED_TRACE(bit);
    expect_refused(request(kRead, 1, 0, 4096, static_cast<uint16_t>(1u << bit)), 1, EINVAL);
  }
  const auto client = serving(path());
  ASSERT_TRUE(client->send(request(kWrite, 1, 0, 64, 1u << 9) + std::string(64, 'f')));
  EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(1, EINVAL));
  EXPECT_TRUE(in_step(*client)) << "the payload was skipped";
}

TEST_F(HostileTable, FlushWithAnOffsetOrALengthIsInvalid) {
  expect_refused(request(kFlush, 1, 4096, 0), 1, EINVAL);
  expect_refused(request(kFlush, 2, 0, 4096), 2, EINVAL);
}

TEST_F(HostileTable, BadRequestMagicIsClosed) {
  const auto client = serving(path());
  std::string bad = request(kFlush, 1, 0, 0);
  bad[3] = '\x14';
  ASSERT_TRUE(client->send(bad));
  EXPECT_TRUE(client->closed_without_a_word());
  EXPECT_TRUE(eventually([&] { return server().report().connections_broken == 1; }));
}

class HostileTableWithLimits : public HostileTest {};

TEST_F(HostileTableWithLimits, WhoNeverNegotiatesIsClosedAfterTenSeconds) {
  EXPECT_EQ(nbd::ServerOptions().negotiation_time_max, std::chrono::seconds(10));
  // The same limit, made short.
  TestServerOptions options = small_disk();
  options.server.negotiation_time_max = std::chrono::milliseconds(500);
  start(std::move(options));
  const auto client = greeted(path());
  EXPECT_TRUE(client->closed_by_server());
  EXPECT_TRUE(eventually([&] { return server().report().negotiations_timed_out == 1; }));
}

TEST_F(HostileTableWithLimits, AHundredAndFiftyHalfOpenClientsMeetACap) {
  start();
  EXPECT_EQ(server().report().connections_max, 128u) << "the default";
  std::vector<std::unique_ptr<RawClient>> half_open;
  half_open.reserve(150);
  for (int i = 0; i < 150; ++i)
    half_open.push_back(std::make_unique<RawClient>(path()));
  // One place is the well-behaved client's.
  EXPECT_TRUE(eventually([&] { return server().report().connections_refused == 150 - 127; }));
  EXPECT_TRUE(eventually([&] { return server().report().connections_now == 128u; }));
  EXPECT_TRUE(eventually([&] {
    return server().report().in_flight_bytes == nbd::in_flight_bytes_a_client();
  })) << "they have none of the buffers";
}

}  // namespace
}  // namespace tuck::test

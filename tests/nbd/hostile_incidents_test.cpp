// One test for each incident of other NBD servers, of the kind that went wrong there. Where to find
// each, and those that are of clients or of kernels alone: tests/nbd/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "frontends/nbd/buffers.h"
#include "frontends/nbd/protocol.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/hostile.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

using nbd::Option;

constexpr uint32_t kAllOptions[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xffffffff};

class Incident : public HostileTest {
 protected:
  void SetUp() override {
    TestServerOptions options = small_disk();
    // Hundreds come and go faster than the server buries them.
    options.server.connections_max = 1024;
    start(std::move(options));
  }

  std::unique_ptr<RawClient> saying(const std::string& options) {
    auto client = greeted(path());
    client->send(client_flags() + options);  // the server may close before it has all of it
    return client;
  }
};

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// CVE-2005-3534, CVE-2011-0530 (nbd-server): a request longer than the buffer overran it.
TEST_F(Incident, Cve2005_3534RequestsAroundEveryBuffersLength) {
  TestServerOptions options;
  options.disk_bytes = 80u << 20;
  start(std::move(options));
  const auto client = serving(path());
  uint64_t cookie = 0;
  const uint64_t at = (4u << 20) + 13;
  for (const uint32_t border : {4096u, 65'536u, uint32_t{nbd::kReceiveBytes},
                                uint32_t{nbd::kSendBytes}, 1u << 20, nbd::kPayloadBytesMax}) {
    for (const uint32_t length : {border - 28, border - 1, border, border + 1}) {
      if (length > nbd::kPayloadBytesMax) continue;
      SCOPED_TRACE(length);
      const std::string data = text_of(random_bytes(mix(seed(), length), length));
      ASSERT_TRUE(client->send(request(kWrite, ++cookie, at, length) + data));
      ASSERT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(cookie));
      ASSERT_TRUE(client->send(request(kRead, ++cookie, at, length)));
      ASSERT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(cookie));
      ASSERT_TRUE(client->receive(length) == data);
    }
  }
  for (const uint32_t length : {nbd::kPayloadBytesMax + 1, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    SCOPED_TRACE(length);
    const auto reader = serving(path());
    ASSERT_TRUE(reader->send(request(kRead, 1, 0, length)));
    EXPECT_EQ(reader->receive(nbd::kSimpleReplyBytes), simple_reply(1, EINVAL));
    const auto writer = serving(path());
    writer->send(request(kWrite, 1, 0, length) + std::string(300'000, 'x'));
    EXPECT_TRUE(writer->closed_without_a_word());
  }
}

// CVE-2011-1925 (nbd-server): a mistake in the negotiation ended the server.
TEST_F(Incident, Cve2011_1925BrokenNewstyleNegotiation) {
  const std::string mistakes[] = {
      std::string(4, '\xff'),
      std::string(64, '\0'),
      "NBDMAGIC" + std::string(100, 'x'),
      client_flags() + "NBDMAGIC" + std::string(8, '\0'),
      client_flags() + "IHAVEOP" + std::string(9, '\0'),
      client_flags() + request(kRead, 1, 0, 4096),
      client_flags(0) + option(Option::go, info_data("")),
      client_flags() + option(Option::export_name, "nosuch"),
      std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // TLS from the start
  };
  for (const std::string& mistake : mistakes) {
    SCOPED_TRACE(mistake.substr(0, 20));
    const auto client = greeted(path());
    client->send(mistake);
    EXPECT_TRUE(client->closed_without_a_word());
  }
  EXPECT_TRUE(
      eventually([&] { return server().report().negotiations_failed == std::size(mistakes); }));
}

// CVE-2013-6410 (nbd-server): an address that begins like one of the allowed ones was allowed. Here
// users are allowed, by number (hostile_limits_test.cpp), and places to listen are checked.
TEST_F(Incident, Cve2013_6410AnAddressThatBeginsLikeAnAllowedOne) {
  for (const char* host : {"127.0.0.1.example.com", "127.0.0.1x", "127.0.0.10.0.0.1", "127.0.0.",
                           "1270.0.0.1", "12.7.0.0", "::10", "::1x", "::ffff:192.0.2.1",
                           "localhost.example.com", "LOCALHOST", " 127.0.0.1"}) {
    EXPECT_TRUE(nbd::check_tcp_host(host)) << host;
  }
  for (const char* host : {"127.0.0.1", "127.0.0.10", "127.255.255.254", "::1", "localhost"}) {
    EXPECT_FALSE(nbd::check_tcp_host(host)) << host;
  }
}

// CVE-2013-7441 (nbd-server): a client that closed while it negotiated, or asked for an export that
// is not there, ended the server for all. At every byte: hostile_death_test.cpp.
TEST_F(Incident, Cve2013_7441ClosingWhileNegotiating) {
  for (const std::string& last :
       {option(Option::export_name, "nosuch"), option(Option::list),
        option(Option::go, info_data("nosuch")), option(Option::go, info_data("")),
        option(Option::export_name, ""), option(Option::abort)}) {
    for (int i = 0; i < 20; ++i) {
      const auto client = greeted(path());
      client->send(client_flags() + last);
      client->hang_up();
    }
    expect_well();
  }
}

// CVE-2022-26495 (nbd-server): a name's length of 0xffffffff, plus one, became an allocation of
// nothing.
TEST_F(Incident, Cve2022_26495LengthMinusOneEverywhere) {
  for (const uint32_t code : kAllOptions) {
    for (const uint32_t length : {0xffffffffu, 0xfffffffeu, 0x80000000u, 0x7fffffffu}) {
      SCOPED_TRACE(code);
      EXPECT_TRUE(saying(option(code, "", length))->closed_without_a_word());
    }
  }
  for (const Option code : {Option::info, Option::go}) {
    for (const uint32_t length : {0xffffffffu, 0xfffffffeu, 0xfffffffau}) {
      const auto client = saying(option(code, be32(length) + "disk" + be16(0)));
      EXPECT_EQ(hear(*client, 1), "INVALID");
      EXPECT_TRUE(negotiation_in_step(*client));
    }
  }
  for (const Option code : {Option::list_meta_context, Option::set_meta_context}) {
    for (const std::string& data :
         {be32(0xffffffff), length_and_text("disk") + be32(0xffffffff),
          length_and_text("disk") + be32(1) + be32(0xffffffff) + "base:allocation"}) {
      const auto client = saying(option(Option::structured_reply) + option(code, data));
      EXPECT_EQ(hear(*client, 2), "ACK INVALID");
      EXPECT_TRUE(negotiation_in_step(*client));
    }
  }
}

// CVE-2022-26496 (nbd-server): what was left of an INFO or GO behind the name went onto the stack.
TEST_F(Incident, Cve2022_26496ALongTailBehindTheName) {
  for (const Option code : {Option::info, Option::go}) {
    for (const size_t tail : {1u, 1023u, 1024u, 1025u, 4097u, 16'000u, 17'000u, 100'000u}) {
      SCOPED_TRACE(tail);
      const auto client =
          saying(option(code, length_and_text("disk") + be16(0) + std::string(tail, '\x41')));
      const std::string heard = hear(*client, 1);
      EXPECT_TRUE(heard == "INVALID" || heard == "TOO_BIG") << heard;
      EXPECT_TRUE(negotiation_in_step(*client));
    }
  }
}

// CVE-2017-9524, CVE-2017-7539 (qemu-nbd): connecting and going, and talking out of turn.
TEST_F(Incident, Cve2017_9524ConnectAndCloseAndOutOfTurn) {
  for (int i = 0; i < 200; ++i)
    RawClient(path()).hang_up();
  const std::string go = option(Option::go, info_data(""));
  const std::string flush = request(kFlush, 1, 0, 0);
  // A request before GO; an option in transmission; the flags twice; the end before the beginning.
  const std::string flags = client_flags();
  const std::vector<std::vector<std::string>> turns = {{flags, flush, go},
                                                       {flags, flags, go},
                                                       {go, flags},
                                                       {flush, flags, go},
                                                       {flags, request(kDisconnect, 1, 0, 0)}};
  for (const std::vector<std::string>& turn : turns) {
    std::string sent;
    for (const std::string& said : turn)
      sent += said;
    const auto client = greeted(path());
    client->send(sent);
    EXPECT_TRUE(client->closed_without_a_word());
  }
  const auto client = serving(path());
  ASSERT_TRUE(client->send(go + go)) << "as long as a request";
  EXPECT_TRUE(client->closed_without_a_word());
}

// CVE-2017-10664 (qemu-nbd): closing while replies were queued was a SIGPIPE, which ended it.
TEST_F(Incident, Cve2017_10664ClosingWhileRepliesAreQueued) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR) << "a signal would end this test";
  for (uint32_t i = 0; i < 20; ++i) {
    const auto client = serving(path());
    std::string reads;
    for (uint64_t n = 0; n < 64; ++n)
      reads += request(kRead, n, 0, 1u << 20);
    ASSERT_TRUE(client->send(reads));
    if (i % 2 == 0) {
      // Some have been sent, more wait.
      EXPECT_EQ(client->receive(nbd::kSimpleReplyBytes), simple_reply(0));
    }
    client->hang_up();
  }
}

// CVE-2017-15118 (qemu): 256 bytes of stack for a name that may have 4096.
TEST_F(Incident, Cve2017_15118NamesOfEveryLength) {
  for (const size_t length : {1u, 254u, 255u, 256u, 257u, 1024u, 4095u, 4096u, 4097u}) {
    SCOPED_TRACE(length);
    const std::string name(length, 'n');
    const bool too_long = length > nbd::kStringBytesMax;
    const auto client =
        saying(option(Option::info, info_data(name)) + option(Option::go, info_data(name)) +
               option(Option::structured_reply) +
               option(Option::set_meta_context, meta_data(name, {name})));
    EXPECT_EQ(hear(*client, 4),
              too_long ? "INVALID INVALID ACK INVALID" : "UNKNOWN UNKNOWN ACK UNKNOWN");
    EXPECT_TRUE(negotiation_in_step(*client));
    EXPECT_TRUE(saying(option(Option::export_name, name))->closed_without_a_word());
  }
}

// CVE-2017-15119 (qemu): options of up to 4 GiB were read to the end, one after the other.
TEST_F(Incident, Cve2017_15119HugeOptionsEndAtTheBudget) {
  const auto client = saying("");
  const std::string huge = option(0x7654321, std::string(120'000, 'h'));
  size_t sent = 0;
  while (sent < (64u << 20) && client->send(huge))
    sent += huge.size();
  // What the server has taken in, and what was on its way when it closed.
  EXPECT_LT(sent, 8u << 20);
  EXPECT_TRUE(client->closed_by_server());
  EXPECT_TRUE(eventually([&] { return server().report().negotiations_over_limits == 1; }));
}

// CVE-2020-10761 (qemu-nbd): an error message with a name near the limit in it hit an assertion.
TEST_F(Incident, Cve2020_10761ErrorsWithTheLongestName) {
  const std::string name(nbd::kStringBytesMax, '\xc3');
  const auto client = greeted(path());
  ASSERT_TRUE(client->send(client_flags() + option(Option::go, info_data(name))));
  const std::string header = client->receive(nbd::kOptionReplyHeaderBytes);
  ASSERT_EQ(header.size(), nbd::kOptionReplyHeaderBytes);
  const uint32_t length = nbd::load32(as_bytes(header).data() + 16);
  EXPECT_LE(length, nbd::kStringBytesMax);
  const std::string message = client->receive(length);
  EXPECT_EQ(message.size(), length);
  EXPECT_EQ(message.find('\xc3'), std::string::npos) << "nothing of the client's own comes back";
  EXPECT_TRUE(negotiation_in_step(*client));
}

// CVE-2019-14850 (nbdkit): who connected had the disk opened for it, before any handshake. Here the
// disks are open; what a client can have opened for it is its buffers, and only GO does that.
TEST_F(Incident, Cve2019_14850NothingIsOpenedBeforeGo) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(saying(option(Option::structured_reply) +
                             option(Option::set_meta_context, meta_data("", {"base:allocation"})) +
                             option(Option::info, info_data(""))));
    EXPECT_EQ(hear(*clients.back(), 5), "ACK META ACK INFO ACK");
  }
  EXPECT_TRUE(eventually([&] { return server().report().connections_now == 101u; }));
  EXPECT_TRUE(eventually([&] { return server().report().connections_serving == 1u; }));
  EXPECT_TRUE(eventually(
      [&] { return server().report().in_flight_bytes == nbd::in_flight_bytes_a_client(); }));
  ASSERT_TRUE(clients[50]->send(option(Option::go, info_data(""))));
  EXPECT_EQ(hear(*clients[50], 2), "INFO ACK");
  EXPECT_TRUE(in_step(*clients[50]));
  EXPECT_TRUE(eventually(
      [&] { return server().report().in_flight_bytes == 2 * nbd::in_flight_bytes_a_client(); }));
}

// CVE-2019-14851 (nbdkit): options in an order that nobody had thought of.
TEST_F(Incident, Cve2019_14851OptionsInEveryOrder) {
  struct Said {
    std::string option;
    std::string before_structured;  // what is heard, without and with structured replies
    std::string with_structured;
    size_t answers_before;
    size_t answers_with;
  };
  const std::vector<Said> options = {
      {option(Option::list), "SERVER SERVER ACK", "SERVER SERVER ACK", 3, 3},
      {option(Option::structured_reply), "ACK", "ACK", 1, 1},
      {option(Option::info, info_data("disk")), "INFO ACK", "INFO ACK", 2, 2},
      {option(Option::go, info_data("nosuch")), "UNKNOWN", "UNKNOWN", 1, 1},
      {option(Option::set_meta_context, meta_data("disk", {"base:allocation"})), "INVALID",
       "META ACK", 1, 2},
      {option(Option::list_meta_context, meta_data("disk", {})), "INVALID", "META ACK", 1, 2},
  };
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
  uint32_t orders = 0;
  do {
    const auto client = saying("");
    bool structured = false;
    bool meta = false;
    for (const size_t i : order) {
      const Said& said = options[i];
      ASSERT_TRUE(client->send(said.option));
      ASSERT_EQ(hear(*client, structured ? said.answers_with : said.answers_before),
                structured ? said.with_structured : said.before_structured);
      if (i == 1) structured = true;
      if (i == 4) meta = structured;
    }
    ASSERT_TRUE(client->send(option(Option::go, info_data("disk"))));
    ASSERT_EQ(hear(*client, 2), "INFO ACK");
    // BLOCK_STATUS is allowed if, and only if, the context was set.
    ASSERT_TRUE(client->send(request(kBlockStatus, 9, 0, 4096)));
    const std::string chunk = client->receive(nbd::kChunkHeaderBytes);
    ASSERT_EQ(chunk.size(), nbd::kChunkHeaderBytes);
    const auto type = nbd::load16(as_bytes(chunk).data() + 6);
    ASSERT_EQ(type == 5, meta) << "chunk type " << type;
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 720u);
}

// CVE-2021-3716 (nbdkit): what was agreed in the clear before STARTTLS, or sent behind it in the
// same breath, survived into the session. There is no TLS here: the option is refused, so nothing
// is forgotten, and what comes behind it is the next option and no more.
TEST_F(Incident, Cve2021_3716BytesBehindStartTls) {
  const std::string set_up = option(Option::structured_reply) +
                             option(Option::set_meta_context, meta_data("", {"base:allocation"}));
  const auto client =
      saying(set_up + option(Option::start_tls) + option(Option::go, info_data("")));
  EXPECT_EQ(hear(*client, 6), "ACK META ACK UNSUP INFO ACK");
  EXPECT_TRUE(in_step(*client)) << "in the clear, as it was agreed";
  // A TLS client's hello instead: no option, so the connection ends. Nothing of it is answered.
  const auto hello = saying(option(Option::start_tls) +
                            std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) +
                            std::string(500, '\x42'));
  EXPECT_EQ(hear(*hello, 1), "UNSUP");
  EXPECT_TRUE(hello->closed_without_a_word());
  const auto with_data = saying(option(Option::start_tls, "x") + option(Option::start_tls));
  EXPECT_EQ(hear(*with_data, 2), "INVALID UNSUP");
  EXPECT_TRUE(negotiation_in_step(*with_data));
}

// CVE-2025-47711 (nbdkit): off by one at the longest BLOCK_STATUS. CVE-2025-47712 (its blocksize
// filter): the extents' lengths overflowed 32 bits when rounded.
TEST_F(Incident, Cve2025_47711StatusOfFourGigabytes) {
  TestServerOptions options;
  const uint64_t size = (uint64_t{5} << 30) + 12'345;
  options.disk_bytes = size;
  start(std::move(options));
  Client client;
  ASSERT_EQ(client.connect(server().unix_uri()), 0) << nbd_get_error();
  const Bytes page(kPageSize, std::byte{7});
  ASSERT_EQ(client.write((uint64_t{4} << 30) - kPageSize, page), 0);
  for (const uint64_t length : {0xffffffffull, 0xfffffffeull, 0xfffff001ull, 0xfffff000ull,
                                0xffffefffull, 0x80000001ull, 0x80000000ull, 0x7fffffffull}) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{4095}, uint64_t{4096},
                                  uint64_t{511}, uint64_t{1} << 30}) {
      SCOPED_TRACE(length);
      std::vector<Client::Extent> extents;
      ASSERT_EQ(client.status(offset, length, &extents), 0) << nbd_get_error();
      uint64_t sum = 0;
      for (const Client::Extent& extent : extents) {
        EXPECT_GT(extent.bytes, 0u);
        sum += extent.bytes;
      }
      EXPECT_LE(sum, length) << "from " << offset;
      if (offset + length <= (uint64_t{4} << 30) - kPageSize) {
        EXPECT_EQ(sum, length) << "one hole from " << offset;
      }
    }
    std::vector<Client::Extent> extents;
    EXPECT_EQ(client.status(size - length + 1, length, &extents), EINVAL) << "one past the end";
  }
}

// nbdkit's zstd allocator: BLOCK_STATUS of what was never written, and WRITE_ZEROES over the border
// of an index into nothing, which wiped what stood before it.
TEST_F(Incident, NbdkitZstdZeroesAcrossBordersOfTheIndex) {
  TestServerOptions options;
  options.disk_bytes = 300u << 20;
  start(std::move(options));
  Client client;
  ASSERT_EQ(client.connect(server().unix_uri()), 0) << nbd_get_error();
  std::vector<Client::Extent> extents;
  ASSERT_EQ(client.status(4u << 20, 296u << 20, &extents), 0);
  EXPECT_EQ(extents, (std::vector<Client::Extent>{{296u << 20, 3}}));
  // 2 MiB is what a leaf of the slot table covers; 128 MiB is where it went wrong elsewhere.
  for (const uint64_t border : {8ull << 20, 10ull << 20, 64ull << 20, 128ull << 20, 256ull << 20}) {
    SCOPED_TRACE(border);
    const Bytes data(64u << 10, std::byte{0x5a});
    ASSERT_EQ(client.write(border - data.size(), data), 0);
    ASSERT_EQ(client.zero(border - (32u << 10), 64u << 10), 0);
    EXPECT_TRUE(client.must_read(border - data.size(), 32u << 10) ==
                Bytes(32u << 10, std::byte{0x5a}));
    EXPECT_TRUE(client.must_read(border - (32u << 10), 96u << 10) == Bytes(96u << 10));
  }
}

// A client that is somewhere in its session when the server stops, as chance has it.
void live_dangerously(const std::string& path, Random random) {
  for (;;) {
    const int fd = connected(path);
    if (fd < 0) return;  // the server is gone
    RawClient client(fd);
    const std::string session = hello_and_go() + request(kWrite, 1, 64'000, 70'000) +
                                std::string(70'000, 's') + request(kRead, 2, 0, 3u << 20) +
                                request(kTrim, 3, 0, 1u << 20) + request(kFlush, 4, 0, 0);
    const size_t sent = random.below(session.size() + 1);
    client.send(session.substr(0, random.one_in(2) ? sent : std::min<size_t>(sent, 100)));
    if (random.one_in(2)) client.receive(random.below(200));
    // Some hold the socket until the server lets go of it.
    if (random.one_in(4)) client.closed_by_server();
  }
}

// CVE-2024-7409 (qemu): stopping while a client held its socket was a use after free; and there was
// neither a cap nor a time for the handshake (hostile_table_test.cpp).
TEST(IncidentAtStop, Cve2024_7409StoppingWithClientsInEveryPhase) {
  for (uint32_t round = 0; round < scaled(40); ++round) {
    TestServerOptions options;
    options.disk_bytes = 4u << 20;
    options.server.connections_max = 16;
    TestServer server(std::move(options));
    std::vector<std::jthread> clients;
    for (uint32_t i = 0; i < 6; ++i) {
      clients.emplace_back([&server, random = Random(mix(seed(), round * 100 + i))] {
        live_dangerously(server.socket_path(), random);
      });
    }
    // Some way into it. Each client has one session at least; all may be holding on in it.
    ASSERT_TRUE(eventually([&] { return server.report().connections_accepted > round % 6; }));
    server.stop();
    EXPECT_EQ(server.report().connections_now, 0u);
    EXPECT_EQ(server.report().in_flight_bytes, 0u);
    // Nobody negotiated badly. One would be counted that was to hear the greeting and never did.
    EXPECT_EQ(server.report().negotiations_failed, 0u);
  }
}

}  // namespace
}  // namespace tuck::test

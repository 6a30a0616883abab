// What clients get to see of the disks: libnbd and bare sockets against a real server and engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/nbd/clients.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/test_server.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

constexpr uint32_t kHole = 1;
constexpr uint32_t kZero = 2;
constexpr size_t kMiB = 1u << 20;
using Extents = std::vector<Client::Extent>;

Bytes filled(size_t bytes, int value) {
  return Bytes(bytes, static_cast<std::byte>(value));
}

TEST(NbdServer, ServesTwoDisksOnTwoKindsOfSocket) {
  TestServerOptions options;
  options.tcp = true;
  TestServer server(std::move(options));
  Client over_unix;
  Client over_tcp;
  Client second;
  ASSERT_EQ(over_unix.connect(server.unix_uri("disk")), 0) << nbd_get_error();
  ASSERT_EQ(over_tcp.connect(server.tcp_uri("")), 0) << nbd_get_error();
  ASSERT_EQ(second.connect(server.tcp_uri("second")), 0) << nbd_get_error();
  EXPECT_EQ(nbd_get_size(over_unix.handle()), 64 << 20);
  EXPECT_EQ(nbd_get_size(second.handle()), (1 << 20) + 100);
  EXPECT_EQ(nbd_is_read_only(second.handle()), 1);
  EXPECT_EQ(nbd_can_multi_conn(over_unix.handle()), 1);

  const Bytes data = random_bytes(seed(), 100'000);
  ASSERT_EQ(over_unix.write(4096, data), 0);
  EXPECT_EQ(over_tcp.must_read(4096, data.size()), data) << "what one socket wrote";
  EXPECT_EQ(second.must_read(4096, data.size()), filled(data.size(), 0)) << "another disk";
  EXPECT_EQ(server.report().connections_now, 3u);
}

TEST(NbdServer, ReadsAndWritesAnywhere) {
  for (const bool structured : {true, false}) {
    TestServer server;
    Client client({structured, true});
    ASSERT_EQ(client.connect(server.unix_uri()), 0) << nbd_get_error();
    Bytes oracle = filled(2 * kMiB, 0);
    Random random(mix(seed(), structured));
    for (uint32_t i = 0; i < scaled(2000); ++i) {
      const size_t most = random.one_in(8) ? 400'000 : 10'000;
      const size_t offset = random.below(oracle.size() - 1);
      const size_t length = random.between(1, std::min(most, oracle.size() - offset));
      if (random.one_in(2)) {
        const Bytes data = random_bytes(random.next(), length);
        ASSERT_EQ(client.write(offset, data), 0) << nbd_get_error();
        std::copy(data.begin(), data.end(), oracle.begin() + static_cast<std::ptrdiff_t>(offset));
      } else {
        const auto from = oracle.begin() + static_cast<std::ptrdiff_t>(offset);
        ASSERT_EQ(client.must_read(offset, length),
                  Bytes(from, from + static_cast<std::ptrdiff_t>(length)))
            << length << " bytes at " << offset << ", step " << i;
      }
    }
  }
}

// DF: the reply must not be in pieces.
Bytes read_in_one_chunk(Client& client, uint64_t offset, size_t bytes) {
  Bytes out(bytes);
  int chunks = 0;
  nbd_chunk_callback callback{};
  callback.user_data = &chunks;
  callback.callback = [](void* user_data, const void*, size_t, uint64_t, unsigned, int*) {
    ++*static_cast<int*>(user_data);
    return 0;
  };
  EXPECT_EQ(nbd_pread_structured(client.handle(), out.data(), bytes, offset, callback,
                                 LIBNBD_CMD_FLAG_DF),
            0)
      << nbd_get_error();
  EXPECT_EQ(chunks, 1);
  return out;
}

TEST(NbdServer, TakesTheLongestRequestsAtAnyOffset) {
  TestServer server;
  Client structured;
  Client simple({false, true});
  ASSERT_EQ(structured.connect(server.unix_uri()), 0);
  ASSERT_EQ(simple.connect(server.unix_uri()), 0);
  const Bytes data = random_bytes(seed(), 32 * kMiB);
  for (const uint64_t offset : {0u, 12'345u, 4'096u * 3}) {
    ASSERT_EQ(structured.write(offset, data), 0) << nbd_get_error();
    EXPECT_TRUE(structured.must_read(offset, data.size()) == data) << "in chunks, at " << offset;
    EXPECT_TRUE(read_in_one_chunk(structured, offset, data.size()) == data)
        << "in one chunk, at " << offset;
    EXPECT_TRUE(simple.must_read(offset, data.size()) == data) << "simple, at " << offset;
    EXPECT_TRUE(simple.must_read(offset + 1, 256 * 1024) ==
                Bytes(data.begin() + 1, data.begin() + 1 + 256 * 1024));
  }
  EXPECT_TRUE(simple.must_read(32 * kMiB + 12'345, 4096) == filled(4096, 0)) << "behind it";
}

TEST(NbdServer, TellsHolesFromZeroesFromData) {
  TestServer server;
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0);
  const Bytes data = random_bytes(seed(), kMiB);
  Extents extents;
  ASSERT_EQ(client.status(0, 64 * kMiB, &extents), 0) << nbd_get_error();
  EXPECT_EQ(extents, (Extents{{64 * kMiB, kHole | kZero}})) << "nothing was ever written";

  ASSERT_EQ(client.write(kMiB, filled(kMiB, 7)), 0);
  ASSERT_EQ(client.zero(kMiB + 65536, 65536, LIBNBD_CMD_FLAG_NO_HOLE), 0);
  ASSERT_EQ(client.zero(kMiB + 262144, 65536), 0);
  ASSERT_EQ(client.trim(kMiB + 524288 + 1, 65536), 0);  // 15 whole pages
  ASSERT_EQ(client.status(0, 4 * kMiB, &extents), 0);
  const uint64_t page = kPageSize;
  EXPECT_EQ(extents, (Extents{{kMiB, kHole | kZero},
                              {65536, 0},
                              {65536, kZero},
                              {131072, 0},
                              {65536, kHole | kZero},
                              {262144 - 65536 + page, 0},
                              {65536 - page, kHole | kZero},
                              {kMiB - 524288 - 65536, 0},
                              {2 * kMiB, kHole | kZero}}));
  ASSERT_EQ(client.status(kMiB + 100, 100'000, &extents, LIBNBD_CMD_FLAG_REQ_ONE), 0);
  EXPECT_EQ(extents, (Extents{{65536 - 100, 0}})) << "only one was asked for";

  Bytes expected = filled(kMiB, 7);
  const auto clear = [&expected](size_t offset, size_t bytes) {
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(offset), bytes, std::byte{0});
  };
  clear(65536, 65536);
  clear(262144, 65536);
  clear(524288 + page, 65536 - page);
  EXPECT_EQ(client.must_read(kMiB, kMiB), expected);
}

TEST(NbdServer, MoreExtentsThanOneReplyHoldsComeInSeveral) {
  TestServer server;
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0);
  // Every other page: 4096 extents in 16 MiB.
  for (uint64_t at = 0; at < 16 * kMiB; at += 2 * kPageSize) {
    ASSERT_EQ(client.write(at, filled(kPageSize, 9)), 0);
  }
  uint64_t at = 0;
  uint32_t expected = 0;
  while (at < 16 * kMiB) {
    Extents extents;
    ASSERT_EQ(client.status(at, 16 * kMiB - at, &extents), 0);
    ASSERT_FALSE(extents.empty());
    for (const Client::Extent& extent : extents) {
      ASSERT_EQ(extent.bytes, kPageSize) << "at " << at;
      ASSERT_EQ(extent.flags, expected) << "at " << at;
      expected ^= kHole | kZero;
      at += extent.bytes;
    }
  }
  const Bytes all = client.must_read(0, 16 * kMiB);
  for (size_t i = 0; i < all.size(); i += kPageSize) {
    ASSERT_EQ(all[i], std::byte{(i / kPageSize) % 2 == 0 ? uint8_t{9} : uint8_t{0}}) << i;
  }
}

TEST(NbdServer, HolesNeedNotTravel) {
  TestServer server;
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0);
  ASSERT_EQ(client.write(65536, filled(65536, 1)), 0);
  struct Chunk {
    uint64_t offset;
    size_t bytes;
    unsigned status;
  };
  std::vector<Chunk> chunks;
  nbd_chunk_callback callback{};
  callback.user_data = &chunks;
  callback.callback = [](void* user_data, const void*, size_t count, uint64_t offset,
                         unsigned status, int*) {
    static_cast<std::vector<Chunk>*>(user_data)->push_back({offset, count, status});
    return 0;
  };
  Bytes out(262144);
  ASSERT_EQ(nbd_pread_structured(client.handle(), out.data(), out.size(), 0, callback, 0), 0);
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[0].status, unsigned{LIBNBD_READ_HOLE});
  EXPECT_EQ(chunks[1].status, unsigned{LIBNBD_READ_DATA});
  EXPECT_EQ(chunks[1].offset, 65536u);
  EXPECT_EQ(chunks[1].bytes, 65536u);
  EXPECT_EQ(chunks[2].status, unsigned{LIBNBD_READ_HOLE});
}

TEST(NbdServer, RefusesWhatIsWrongAndStaysInStep) {
  TestServer server;
  Client client({true, false});
  ASSERT_EQ(client.connect(server.unix_uri("second")), 0);
  const uint64_t size = kMiB + 100;
  const Bytes data = random_bytes(seed(), 300'000);
  Extents extents;
  EXPECT_EQ(client.write(0, data), EPERM) << "read-only; the payload is skipped";
  EXPECT_EQ(client.trim(0, 4096), EPERM);
  EXPECT_EQ(client.zero(0, 4096), EPERM);
  Bytes out(4096);
  EXPECT_EQ(client.read(size - 4095, out), EINVAL) << "one byte past the end";
  EXPECT_EQ(client.read(UINT64_MAX - 100, out), EINVAL) << "wraps";
  Bytes too_long(33 * kMiB);
  EXPECT_EQ(client.read(0, too_long), EINVAL);
  EXPECT_EQ(client.status(size, 1, &extents), EINVAL);
  EXPECT_EQ(client.read(size - 4096, out), 0) << "up to the end";
  EXPECT_EQ(client.flush(), 0);
  EXPECT_EQ(client.cache(0, size), 0);
  EXPECT_EQ(server.operation("write").errors, 1u);
  EXPECT_EQ(server.operation("read").errors, 3u);
  EXPECT_EQ(server.operation("read").requests, 4u);
  EXPECT_EQ(server.operation("flush").latency_ns.total(), 1u);

  Client writer({true, false});
  ASSERT_EQ(writer.connect(server.unix_uri()), 0);
  EXPECT_EQ(writer.write(64 * kMiB - 100, data), ENOSPC) << "past the end";
  EXPECT_EQ(writer.write(64 * kMiB - data.size(), data), 0);
}

TEST(NbdServer, AFullPoolIsNoSpaceForTheWriterOnly) {
  TestServerOptions options;
  options.engine.memory_limit_bytes = 8 * kMiB;
  options.engine.reserve_bytes = kMiB;
  TestServer server(std::move(options));
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0);
  // Incompressible, each page another.
  Bytes data(kMiB);
  Random random(seed());
  int error = 0;
  uint64_t offset = 0;
  for (; error == 0 && offset < 64 * kMiB; offset += data.size()) {
    for (size_t i = 0; i < data.size(); i += 8) {
      const uint64_t word = random.next();
      std::memcpy(&data[i], &word, sizeof word);
    }
    error = client.write(offset, data);
  }
  EXPECT_EQ(error, ENOSPC);
  EXPECT_GE(offset, 4 * kMiB);
  EXPECT_EQ(client.must_read(0, 4096).size(), 4096u) << "in step after the refused payload";
  ASSERT_EQ(client.trim(0, 64 * kMiB), 0);
  EXPECT_TRUE(eventually([&] { return client.write(0, data) == 0; })) << "room again after TRIM";
  EXPECT_TRUE(client.must_read(0, data.size()) == data);
}

// The same session in one piece, byte by byte, and cut anywhere: the same replies.
TEST(NbdServer, RequestsMayComeInAnyPieces) {
  TestServer server;
  std::string session;
  std::string replies;
  const auto say = [&](const std::string& sent, const std::string& expected) {
    session += sent;
    replies += expected;
  };
  const std::string page(5000, 'p');
  say(request(0, 10, 0, 0), simple_reply(10));
  say(request(1, 1, 4000, 5000) + page, simple_reply(1));
  say(request(0, 2, 4000, 5000), simple_reply(2) + page);
  say(request(3, 3, 0, 0), simple_reply(3));
  say(request(77, 4, 0, 0), simple_reply(4, EINVAL));
  say(request(6, 5, 4096, 4096), simple_reply(5));
  say(request(0, 6, 4095, 3), simple_reply(6) + std::string("p\0\0", 3));
  say(request(4, 7, 0, 1u << 20), simple_reply(7));
  say(request(0, 8, 4000, 2), simple_reply(8) + std::string(2, '\0'));
  say(request(1, 9, 64u << 20, 5) + "12345", simple_reply(9, ENOSPC));
  for (const size_t piece : {session.size(), size_t{1}, size_t{27}, size_t{1000}}) {
    RawClient client(server.socket_path());
    ASSERT_TRUE(client.go());
    for (size_t at = 0; at < session.size(); at += piece) {
      ASSERT_TRUE(client.send(std::string_view(session).substr(at, piece)));
    }
    EXPECT_EQ(client.receive(replies.size()), replies) << "in pieces of " << piece;
  }
  RawClient half(server.socket_path());
  ASSERT_TRUE(half.go());
  ASSERT_TRUE(half.send(session + request(2, 11, 0, 0)));
  half.send_no_more();
  EXPECT_EQ(half.receive(replies.size() + 1), replies) << "then the server closes";
}

TEST(NbdServer, HundredsOfRequestsInFlight) {
  TestServer server;
  RawClient client(server.socket_path());
  ASSERT_TRUE(client.go());
  constexpr uint32_t kRequests = 600;
  constexpr uint64_t kRead = 1u << 16;  // in cookies
  std::string writes;
  std::string reads;
  std::string expected;
  for (uint32_t i = 0; i < kRequests; ++i) {
    const std::string page(kPageSize, static_cast<char>(i * 7 + 1));
    writes += request(1, i, uint64_t{i} * kPageSize, kPageSize) + page;
    reads += request(0, kRead + i, uint64_t{i} * kPageSize, kPageSize);
    expected += simple_reply(kRead + i) + page;
  }
  // Replies to reads wait in the server until the client takes them: more than its buffers hold.
  ASSERT_TRUE(client.send(writes + reads));
  std::string written;
  for (uint32_t i = 0; i < kRequests; ++i)
    written += simple_reply(i);
  // Reads may overtake writes of other pages, and nothing else.
  std::string to_writes;
  std::string to_reads;
  for (uint32_t i = 0; i < 2 * kRequests; ++i) {
    const std::string reply = client.receive(nbd::kSimpleReplyBytes);
    ASSERT_EQ(reply.size(), nbd::kSimpleReplyBytes);
    if ((nbd::load64(as_bytes(reply).data() + 8) & kRead) == 0) {
      to_writes += reply;
    } else {
      to_reads += reply + client.receive(kPageSize);
    }
  }
  EXPECT_TRUE(to_writes == written);
  EXPECT_TRUE(to_reads == expected);
}

}  // namespace
}  // namespace tuck::test

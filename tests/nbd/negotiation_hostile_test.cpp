// The handshake with clients that send anything: wrong lengths, too much, too little, one byte at a
// time, noise. It ends in an answer or a closed connection, never elsewhere.
#include <gtest/gtest.h>

#include "frontends/nbd/negotiation.h"
#include "tests/nbd/exports.h"
#include "tests/nbd/handshake.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

using nbd::Negotiation;
using nbd::Option;

Outcome talk(const std::string& options, nbd::NegotiationLimits limits = {}) {
  return negotiate(Exports::pair(), client_flags() + options, limits);
}

// What the options are answered, and that the server is still in step behind them.
std::string in_step(const std::string& options) {
  const Outcome outcome = talk(options + option(Option::abort));
  EXPECT_TRUE(outcome.in_order) << outcome.reason;
  const std::string types = outcome.types();
  EXPECT_TRUE(types.ends_with(" ACK")) << types;
  return types.substr(0, types.size() - std::min<size_t>(types.size(), 4));
}

void expect_thrown_out(const Outcome& outcome) {
  EXPECT_TRUE(outcome.closed());
  EXPECT_FALSE(outcome.in_order);
  EXPECT_NE(outcome.reason, "");
}

constexpr uint32_t kAllOptions[] = {1, 2,  3,  4,  5, 6,         7,         8,
                                    9, 10, 11, 12, 0, 0x7654321, 0xffffffff};

// --- What peers do with hostile input: each case of the protocol notes' table ------------------

TEST(HostileHandshake, ClientFlagsThatWereNotOfferedClose) {
  for (uint32_t bit = 2; bit < 32; ++bit) {
    const Outcome outcome = negotiate(Exports::pair(), client_flags(kBothFlags | 1u << bit));
    expect_thrown_out(outcome);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(HostileHandshake, WithoutFixedNewstyleOnlyExportNameAndAbort) {
  for (const uint32_t code : kAllOptions) {
    const Outcome outcome = negotiate(Exports::pair(), client_flags(0) + option(code));
    SCOPED_TRACE(code);
    if (code == 1) {
      EXPECT_TRUE(outcome.in_transmission());
    } else if (code == 2) {
      EXPECT_TRUE(outcome.in_order);
    } else {
      expect_thrown_out(outcome);
    }
  }
}

TEST(HostileHandshake, BadOptionMagicCloses) {
  for (size_t i = 0; i < 8; ++i) {
    std::string bad = option(Option::list);
    bad[i] = static_cast<char>(bad[i] ^ 1);
    expect_thrown_out(talk(bad));
  }
  // The magic of a request where an option should be: a client that is ahead of itself.
  expect_thrown_out(talk(be32(nbd::kRequestMagic) + std::string(24, '\0')));
}

TEST(HostileHandshake, DataAboveTheCapClosesBeforeItComes) {
  for (const uint32_t code : kAllOptions) {
    SCOPED_TRACE(code);
    for (const uint32_t length : {0xffffffffu, 0x80000000u, (128u << 10) + 1}) {
      const Outcome outcome = talk(option(code, "", length));
      expect_thrown_out(outcome);
      EXPECT_EQ(outcome.out, "");
    }
  }
}

TEST(HostileHandshake, UnknownOptionsAreSkippedUpToTheCap) {
  const std::string most(128u << 10, 'x');
  EXPECT_EQ(in_step(option(0x7654321, most)), "UNSUP");
  expect_thrown_out(talk(option(0x7654321, most + "x")));

  const std::string options = option(0x7654321, std::string(100'000, 'x')) + option(Option::abort);
  EXPECT_EQ(talk(options).types(), "UNSUP ACK");
}

TEST(HostileHandshake, OptionsThatAreNotSupported) {
  for (const uint32_t code : {0u, 4u, 5u, 11u, 12u, 0x7654321u, 0xffffffffu}) {
    SCOPED_TRACE(code);
    EXPECT_EQ(in_step(option(code)), "UNSUP");
    // STARTTLS has no data, here as anywhere.
    EXPECT_EQ(in_step(option(code, std::string(300, '\xff'))), code == 5 ? "INVALID" : "UNSUP");
  }
}

TEST(HostileHandshake, MalformedInfoAndGo) {
  const std::string name_with_nul("di\0sk", 5);
  const std::string cases[] = {
      "",
      be32(0),
      be32(0) + std::string(1, '\0'),
      be32(0xffffffff) + be16(0),
      be32(0xfffffffe) + "disk" + be16(0),
      be32(5000) + be16(0),
      be32(5) + "disk" + be16(0),
      length_and_text("disk") + be16(500),
      length_and_text("disk") + be16(1) + "x",
      length_and_text("disk") + be16(0) + "x",
      length_and_text("disk") + be16(1) + std::string(2000, 'x'),
      info_data(name_with_nul),
      info_data(std::string("disk\0", 5)),
      info_data(std::string(4097, 'n')),
      info_data(std::string(5000, 'n')),
  };
  for (const Option code : {Option::info, Option::go}) {
    for (const std::string& data : cases) {
      SCOPED_TRACE(data.substr(0, 40));
      EXPECT_EQ(in_step(option(code, data)), "INVALID");
    }
    EXPECT_EQ(in_step(option(code, info_data("disk", std::vector<uint16_t>(12'000, 1)))),
              "TOO_BIG");
  }
  EXPECT_EQ(in_step(option(Option::info, info_data("disk", std::vector<uint16_t>(500, 9)))),
            "INFO ACK");
}

TEST(HostileHandshake, NamesOfEveryLength) {
  for (const size_t length :
       {1u, 254u, 255u, 256u, 257u, 1023u, 1024u, 1025u, 3000u, 4095u, 4096u}) {
    SCOPED_TRACE(length);
    const std::string name(length, 'n');
    const Outcome outcome = talk(option(Option::go, info_data(name)) + option(Option::abort));
    EXPECT_EQ(outcome.types(), "UNKNOWN ACK");
    // Nothing of the name comes back, so no name is too long for the message.
    if (length > 100) {
      EXPECT_EQ(outcome.out.find(name), std::string::npos);
    }
    expect_thrown_out(talk(option(Option::export_name, name)));

    const auto exports = Exports::many(1, length, "");
    for (const std::string& options : {option(Option::go, info_data(exports[0].name, {1, 2, 3})),
                                       option(Option::export_name, exports[0].name)}) {
      EXPECT_TRUE(negotiate(exports, client_flags() + options).in_transmission());
    }
  }
  for (const size_t length : {4097u, 8192u, 65'536u}) {
    const Outcome outcome = talk(option(Option::export_name, std::string(length, 'n')));
    expect_thrown_out(outcome);
    EXPECT_EQ(outcome.consumed, 4u + 16);
  }
}

TEST(HostileHandshake, MalformedMetaContexts) {
  const std::string name = length_and_text("disk");
  const std::string cases[] = {
      "",
      be32(0xffffffff),
      be32(5) + "disk",
      name,
      name + be16(0),
      name + be32(1),
      name + be32(0xffffffff),
      name + be32(1) + be32(0xffffffff) + "base:allocation",
      name + be32(1) + be32(16) + "base:allocation",
      name + be32(2) + length_and_text("base:allocation"),
      name + be32(0) + "x",
      name + be32(1) + length_and_text("base:allocation") + "x",
      meta_data("disk", {std::string(4097, 'q')}),
      meta_data("disk", {std::string("base:\0", 6)}),
      meta_data(std::string("disk\0", 5), {}),
      meta_data(std::string(4097, 'n'), {}),
  };
  for (const Option code : {Option::list_meta_context, Option::set_meta_context}) {
    for (const std::string& data : cases) {
      SCOPED_TRACE(data.substr(0, 40));
      EXPECT_EQ(in_step(option(Option::structured_reply) + option(code, data)), "ACK INVALID");
    }
    EXPECT_EQ(in_step(option(Option::structured_reply) + option(code, std::string(40'000, 'x'))),
              "ACK TOO_BIG");
    // Many small queries and few large ones are both fine.
    for (const auto& queries : {std::vector<std::string>(3000, ""),
                                std::vector<std::string>(2, std::string(4096, 'q'))}) {
      EXPECT_EQ(
          in_step(option(Option::structured_reply) + option(code, meta_data("disk", queries))),
          "ACK ACK");
    }
  }
}

TEST(HostileHandshake, DataWhereNoneBelongs) {
  EXPECT_EQ(in_step(option(Option::list, "x")), "INVALID");
  EXPECT_EQ(in_step(option(Option::list, std::string(64u << 10, 'x'))), "INVALID");
  // Refused, so structured replies are off, and meta contexts with them.
  EXPECT_EQ(in_step(option(Option::structured_reply, "x") +
                    option(Option::list_meta_context, meta_data("disk", {}))),
            "INVALID INVALID");
  EXPECT_EQ(in_step(option(Option::structured_reply) + option(Option::structured_reply)),
            "ACK ACK");
}

TEST(HostileHandshake, TooManyOptionsClose) {
  std::string options;
  for (int i = 0; i < 400; ++i)
    options += option(Option::list);
  const Outcome outcome = talk(options);
  expect_thrown_out(outcome);
  EXPECT_EQ(outcome.answers().size(), 64u * 3);
  EXPECT_EQ(outcome.consumed, 4u + 65 * 16);

  nbd::NegotiationLimits limits;
  limits.options_max = 2;
  EXPECT_EQ(talk(option(Option::list) + option(Option::abort), limits).types(),
            "SERVER SERVER ACK ACK");
}

TEST(HostileHandshake, TooManyBytesClose) {
  std::string options;
  for (int i = 0; i < 30; ++i)
    options += option(0x7654321, std::string(64u << 10, 'x'));
  const Outcome outcome = talk(options);
  expect_thrown_out(outcome);
  EXPECT_LE(outcome.consumed, 1u << 20);
  // 15 whole options fit into 1 MiB beside their headers.
  EXPECT_EQ(outcome.answers().size(), 15u);
}

TEST(HostileHandshake, NothingIsEatenAfterTheEnd) {
  Peer peer(Exports::pair());
  peer.feed(client_flags() + option(Option::abort));
  EXPECT_EQ(peer.feed(option(Option::list)), 0u);
  EXPECT_EQ(peer.outcome().types(), "ACK");
}

// --- Every way to cut the stream ---------------------------------------------------------------

// Every option, right and wrong, ending in transmission.
std::string long_transcript() {
  return client_flags() + option(Option::list) + option(Option::list, "x") +
         option(Option::structured_reply) + option(0x7654321, std::string(100, 'x')) +
         option(Option::start_tls) + option(Option::extended_headers) +
         option(Option::peek_export) + option(Option::info, info_data("disk", {0, 1, 2, 3})) +
         option(Option::go, "short") + option(Option::go, info_data("nosuch")) +
         option(Option::list_meta_context, meta_data("disk", {})) +
         option(Option::set_meta_context, meta_data("disk", {"qemu:", "base:allocation"})) +
         option(Option::go, info_data("disk", {3})) + "the first request";
}

void expect_same(const Outcome& outcome, const Outcome& wanted) {
  EXPECT_EQ(outcome.state, wanted.state);
  EXPECT_EQ(outcome.out, wanted.out);
  EXPECT_EQ(outcome.consumed, wanted.consumed);
  EXPECT_EQ(outcome.negotiated.base_allocation, wanted.negotiated.base_allocation);
  EXPECT_EQ(outcome.negotiated.export_, wanted.negotiated.export_);
}

TEST(HandshakeInPieces, SaysTheSameWhereverItIsCut) {
  const std::string text = long_transcript();
  const Outcome wanted = negotiate(Exports::pair(), text);
  ASSERT_TRUE(wanted.in_transmission());
  ASSERT_TRUE(wanted.negotiated.base_allocation);
  ASSERT_EQ(wanted.types(),
            "SERVER SERVER ACK INVALID ACK UNSUP UNSUP UNSUP UNSUP INFO INFO INFO INFO ACK INVALID "
            "UNKNOWN META ACK META ACK INFO INFO ACK");
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Peer peer(Exports::pair());
    // What a call leaves behind comes again, as from a socket's buffer.
    const size_t eaten = peer.feed(std::string_view(text).substr(0, cut));
    peer.feed(std::string_view(text).substr(eaten));
    expect_same(peer.outcome(), wanted);
    if (HasFailure()) FAIL() << "cut at " << cut;
  }
}

TEST(HandshakeInPieces, SaysTheSameByteByByte) {
  const std::string text = long_transcript();
  Peer peer(Exports::pair());
  for (const char& byte : text)
    peer.feed(std::string_view(&byte, 1));
  expect_same(peer.outcome(), negotiate(Exports::pair(), text));
}

TEST(HandshakeInPieces, CanEndAtEveryByte) {
  const std::string text = long_transcript();
  const size_t whole = negotiate(Exports::pair(), text).consumed;
  for (size_t cut = 0; cut < whole; ++cut) {
    const Outcome outcome = negotiate(Exports::pair(), std::string_view(text).substr(0, cut));
    EXPECT_TRUE(outcome.running());
    EXPECT_EQ(outcome.consumed, cut);
  }
}

// --- Noise -------------------------------------------------------------------------------------

std::string noise(Random& random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& byte : text)
    byte = static_cast<char>(random.next());
  return text;
}

// Data that is right for some option, or nearly.
std::string random_data(Random& random) {
  const char* const names[] = {"disk", "read-only", "", "nosuch"};
  std::string name = names[random.below(4)];
  switch (random.below(6)) {
    case 0: {
      std::vector<uint16_t> asked(random.below(6));
      for (uint16_t& type : asked)
        type = static_cast<uint16_t>(random.below(5));
      return info_data(name, asked);
    }
    case 1:
      return meta_data(name, {"base:allocation"});
    case 2:
      return meta_data(name, {"base:", noise(random, random.below(10))});
    case 3:
      return name;
    case 4:
      return noise(random, random.below(random.one_in(20) ? 70'000 : 64));
    default:
      return "";
  }
}

// Flags and options, some bytes of which were changed.
std::string random_handshake(Random& random) {
  std::string text = client_flags(random.one_in(10) ? random.below32(8) : kBothFlags);
  const size_t options = random.below(80);
  for (size_t i = 0; i < options; ++i) {
    const std::string data = random_data(random);
    const uint32_t code = random.one_in(20) ? static_cast<uint32_t>(random.next())
                                            : kAllOptions[random.below(std::size(kAllOptions))];
    // Those that end it are rare enough for some handshakes to become long.
    if (code <= 2 && !random.one_in(20)) continue;
    std::optional<uint32_t> claimed;
    if (random.one_in(60)) claimed = random.below32(200);
    text += option(code, data, claimed);
  }
  if (random.one_in(4)) {
    for (uint64_t i = random.below(4); i > 0; --i) {
      text[random.below(text.size())] = static_cast<char>(random.next());
    }
  }
  return text;
}

// Feeds the text in random pieces through a buffer of random size, and looks at every promise.
Outcome check_random(const std::string& text, Random& random) {
  Peer peer(Exports::pair(), {}, Negotiation::kAnswerBytesMax + random.below(20'000));
  std::string_view left = text;
  size_t unread = 0;
  while (unread < left.size()) {
    unread = std::min<size_t>(left.size(), unread + 1 + random.below(random.one_in(3) ? 8 : 4000));
    const size_t eaten = peer.feed(left.substr(0, unread));
    EXPECT_LE(eaten, unread);
    EXPECT_FALSE(peer.stuck());
    left.remove_prefix(eaten);
    unread -= eaten;
    if (!peer.outcome().running()) break;
    // While it runs, it wants more, never what it has already seen.
    EXPECT_EQ(unread, 0u);
  }
  return peer.outcome();
}

TEST(RandomHandshake, EndsWithinItsLimits) {
  Random random(mix(seed(), 1));
  uint32_t transmissions = 0;
  uint32_t closed = 0;
  for (uint32_t round = 0; round < scaled(20'000); ++round) {
    const std::string text = random.one_in(10) ? client_flags() + noise(random, random.below(200))
                                               : random_handshake(random);
    const Outcome outcome = check_random(text, random);
    expect_same(outcome, negotiate(Exports::pair(), text));
    EXPECT_LE(outcome.consumed, 1u << 20);
    if (outcome.in_transmission()) {
      ++transmissions;
      EXPECT_NE(outcome.negotiated.export_, nullptr);
    } else {
      // EXPORT_NAME's answer is the only one without a header.
      EXPECT_NE(outcome.types(), "?");
    }
    if (outcome.closed()) ++closed;
    EXPECT_EQ(outcome.closed(), !outcome.reason.empty());
    if (HasFailure()) FAIL() << "round " << round << " of TUCK_SEED=" << seed();
  }
  // The generator reaches all ends.
  EXPECT_GT(transmissions, 0u);
  EXPECT_GT(closed, 0u);
}

}  // namespace
}  // namespace tuck::test

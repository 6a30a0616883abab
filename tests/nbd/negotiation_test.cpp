// The handshake with clients that mean well. For the others: negotiation_hostile_test.cpp.
#include "frontends/nbd/negotiation.h"

#include <gtest/gtest.h>

#include "tests/nbd/exports.h"
#include "tests/nbd/handshake.h"

namespace tuck::test {
namespace {

using nbd::Option;

constexpr uint16_t kWritableFlags = nbd::kFlagHasFlags | nbd::kFlagSendFlush | nbd::kFlagSendFua |
                                    nbd::kFlagSendTrim | nbd::kFlagSendWriteZeroes |
                                    nbd::kFlagCanMultiConn | nbd::kFlagSendCache |
                                    nbd::kFlagSendFastZero;
constexpr uint16_t kReadOnlyFlags = nbd::kFlagHasFlags | nbd::kFlagReadOnly | nbd::kFlagSendFlush |
                                    nbd::kFlagSendFua | nbd::kFlagCanMultiConn |
                                    nbd::kFlagSendCache;

// The client's flags and the options, to the server with the two exports.
Outcome talk(const std::string& options, uint32_t flags = kBothFlags) {
  return negotiate(Exports::pair(), client_flags(flags) + options);
}

std::string export_info(uint64_t size, uint16_t flags) {
  return be16(0) + be64(size) + be16(flags);
}

TEST(Negotiation, GreetsWithBothMagicNumbersAndItsFlags) {
  std::vector<std::byte> memory(nbd::kGreetingBytes);
  nbd::OutputBuffer out(memory);
  nbd::Negotiation::greet(out);
  const std::string said(reinterpret_cast<const char*>(out.data), out.size);
  EXPECT_EQ(said, std::string("NBDMAGICIHAVEOPT\0\x03", 18));
}

TEST(Negotiation, GoAlwaysTellsSizeAndFlags) {
  const Outcome outcome = talk(option(Option::go, info_data("disk")));
  EXPECT_EQ(outcome.types(), "INFO ACK");
  EXPECT_EQ(outcome.answers()[0].option, Option::go);
  EXPECT_EQ(outcome.answers()[0].payload, export_info(kDiskBytes, kWritableFlags));
  ASSERT_TRUE(outcome.in_transmission());
  EXPECT_EQ(outcome.negotiated.export_, &Exports::pair()[0]);
  EXPECT_EQ(outcome.negotiated.size_bytes, kDiskBytes);
  EXPECT_EQ(outcome.negotiated.transmission_flags, kWritableFlags);
  EXPECT_FALSE(outcome.negotiated.structured_replies);
  EXPECT_FALSE(outcome.negotiated.base_allocation);
}

TEST(Negotiation, ReadOnlyExportSaysSoAndOffersNoWrites) {
  const Outcome outcome = talk(option(Option::go, info_data("read-only")));
  ASSERT_TRUE(outcome.in_transmission());
  EXPECT_EQ(outcome.answers()[0].payload, export_info(kReadOnlyBytes, kReadOnlyFlags));
  EXPECT_EQ(outcome.negotiated.transmission_flags, kReadOnlyFlags);
}

TEST(Negotiation, EmptyNameIsTheFirstExport) {
  const Outcome outcome = talk(option(Option::go, info_data("", {1})));
  ASSERT_TRUE(outcome.in_transmission());
  EXPECT_EQ(outcome.negotiated.export_, &Exports::pair()[0]);
  EXPECT_EQ(outcome.answers()[1].payload, be16(1) + "disk");
}

TEST(Negotiation, InfoAnswersWhatWasAskedAndStays) {
  // 4 and 0x8000 are types that nobody knows; 3 twice is answered once.
  const Outcome outcome = talk(option(Option::info, info_data("disk", {3, 4, 2, 0x8000, 1, 3, 0})));
  EXPECT_EQ(outcome.types(), "INFO INFO INFO INFO ACK");
  const auto answers = outcome.answers();
  EXPECT_EQ(answers[0].payload, export_info(kDiskBytes, kWritableFlags));
  EXPECT_EQ(answers[1].payload, be16(1) + "disk");
  EXPECT_EQ(answers[2].payload, be16(2) + "compressed memory");
  EXPECT_EQ(answers[3].payload, be16(3) + be32(1) + be32(4096) + be32(32u << 20));
  for (const auto& answer : answers)
    EXPECT_EQ(answer.option, Option::info);
  EXPECT_TRUE(outcome.running());
}

TEST(Negotiation, InfoOfAnExportWithoutDescriptionLeavesItOut) {
  EXPECT_EQ(talk(option(Option::info, info_data("read-only", {2}))).types(), "INFO ACK");
}

TEST(Negotiation, GoRepeatsWhatInfoSaid) {
  const std::string data = info_data("disk", {1, 2, 3});
  const auto answers = talk(option(Option::info, data) + option(Option::go, data)).answers();
  ASSERT_EQ(answers.size(), 10u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(answers[i].type, answers[i + 5].type);
    EXPECT_EQ(answers[i].payload, answers[i + 5].payload);
  }
}

TEST(Negotiation, UnknownExportIsRefusedAndTheClientMayTryAgain) {
  const Outcome outcome =
      talk(option(Option::go, info_data("nosuch")) + option(Option::info, info_data("Disk")) +
           option(Option::go, info_data("read-only")));
  EXPECT_EQ(outcome.types(), "UNKNOWN UNKNOWN INFO ACK");
  ASSERT_TRUE(outcome.in_transmission());
  EXPECT_EQ(outcome.negotiated.export_, &Exports::pair()[1]);
}

TEST(Negotiation, ExportNameHasNoReplyHeader) {
  const std::string options = option(Option::export_name, "disk");
  const std::string answer = be64(kDiskBytes) + be16(kWritableFlags);
  EXPECT_EQ(talk(options).out, answer);
  EXPECT_TRUE(talk(options).in_transmission());
  EXPECT_EQ(talk(options, nbd::kClientFixedNewstyle).out, answer + std::string(124, '\0'));
  EXPECT_EQ(talk(options, 0).out, answer + std::string(124, '\0'));
  EXPECT_EQ(talk(options, nbd::kClientNoZeroes).out, answer);
  EXPECT_EQ(talk(option(Option::export_name, "")).negotiated.export_, &Exports::pair()[0]);
}

TEST(Negotiation, ExportNameThatIsNotServedCloses) {
  const Outcome outcome = talk(option(Option::export_name, "nosuch"));
  EXPECT_TRUE(outcome.closed());
  EXPECT_FALSE(outcome.in_order);
  EXPECT_EQ(outcome.out, "");
}

TEST(Negotiation, ListNamesEveryExport) {
  const Outcome outcome = talk(option(Option::list));
  EXPECT_EQ(outcome.types(), "SERVER SERVER ACK");
  EXPECT_EQ(outcome.answers()[0].payload, length_and_text("disk") + "compressed memory");
  EXPECT_EQ(outcome.answers()[1].payload, length_and_text("read-only"));
  EXPECT_TRUE(outcome.running());
}

TEST(Negotiation, LongListGoesThroughASmallBuffer) {
  const auto exports = Exports::many(100, nbd::kStringBytesMax, std::string(5000, 'd'));
  Peer peer(exports);
  peer.feed(client_flags() + option(Option::list) + option(Option::abort));
  const Outcome outcome = peer.outcome();
  EXPECT_FALSE(peer.stuck());
  EXPECT_TRUE(outcome.in_order);
  const auto answers = outcome.answers();
  ASSERT_EQ(answers.size(), 102u);
  for (size_t i = 0; i < exports.size(); ++i) {
    // A description is cut to what the protocol allows.
    EXPECT_EQ(answers[i].payload, length_and_text(exports[i].name) + std::string(4096, 'd'));
  }
}

TEST(Negotiation, LongAnswersToPipelinedOptionsGoThroughASmallBuffer) {
  const auto exports = Exports::many(1, nbd::kStringBytesMax, std::string(4096, 'd'));
  std::string options;
  for (int i = 0; i < 5; ++i)
    options += option(Option::info, info_data(exports[0].name, {1, 2, 3}));
  Peer peer(exports);
  peer.feed(client_flags() + options + option(Option::abort));
  EXPECT_FALSE(peer.stuck());
  EXPECT_TRUE(peer.outcome().in_order);
  EXPECT_EQ(peer.outcome().answers().size(), 5u * 5 + 1);
}

TEST(Negotiation, DescriptionIsNotCutInsideACharacter) {
  // 3-byte characters; 4096 is not a multiple of 3.
  std::string description;
  for (int i = 0; i < 2000; ++i)
    description += "\xe2\x82\xac";
  const auto exports = Exports::many(1, 1, description);
  const auto answers =
      negotiate(exports, client_flags() + option(Option::info, info_data("", {2}))).answers();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[1].payload, be16(2) + description.substr(0, 4095));
}

TEST(Negotiation, AbortIsAcknowledgedAndEndsIt) {
  const Outcome outcome = talk(option(Option::abort, "ignored") + option(Option::list));
  EXPECT_EQ(outcome.types(), "ACK");
  EXPECT_TRUE(outcome.closed());
  EXPECT_TRUE(outcome.in_order);
  EXPECT_EQ(outcome.consumed, 4u + 16 + 7);
}

TEST(Negotiation, StructuredRepliesBringDf) {
  const Outcome outcome =
      talk(option(Option::structured_reply) + option(Option::go, info_data("disk")));
  EXPECT_EQ(outcome.types(), "ACK INFO ACK");
  EXPECT_TRUE(outcome.negotiated.structured_replies);
  EXPECT_EQ(outcome.negotiated.transmission_flags, kWritableFlags | nbd::kFlagSendDf);
  EXPECT_EQ(outcome.answers()[1].payload,
            export_info(kDiskBytes, kWritableFlags | nbd::kFlagSendDf));
}

TEST(Negotiation, RequestsBehindGoAreLeftAlone) {
  const std::string handshake = client_flags() + option(Option::go, info_data("disk"));
  const Outcome outcome = negotiate(Exports::pair(), handshake + std::string(100, 'r'));
  EXPECT_TRUE(outcome.in_transmission());
  EXPECT_EQ(outcome.consumed, handshake.size());
}

// --- Meta contexts ---------------------------------------------------------------------------

struct MetaCase {
  const char* what;
  Option option;
  std::vector<std::string> queries;
  std::string types;
};

TEST(MetaContext, Queries) {
  const std::string base(nbd::kBaseAllocationName);
  const auto list = Option::list_meta_context;
  const auto set = Option::set_meta_context;
  const MetaCase cases[] = {
      {"no query lists all", list, {}, "META ACK"},
      {"the wildcard lists base", list, {"base:"}, "META ACK"},
      {"by name", list, {base}, "META ACK"},
      {"listed once", list, {base, "base:", base}, "META ACK"},
      {"other namespaces are ignored", list, {"qemu:", "x-tuck:y", ""}, "ACK"},
      {"no such leaf", list, {"base:nosuch"}, "ACK"},
      {"no query selects none", set, {}, "ACK"},
      {"the wildcard selects nothing", set, {"base:"}, "ACK"},
      {"selected by name", set, {"qemu:dirty-bitmap:a", base}, "META ACK"},
      {"selected once", set, {base, base}, "META ACK"},
      {"a longer name is another", set, {base + "x"}, "ACK"},
      {"not without its namespace", set, {"allocation"}, "ACK"},
  };
  for (const MetaCase& test : cases) {
    SCOPED_TRACE(test.what);
    const Outcome outcome = talk(option(Option::structured_reply) +
                                 option(test.option, meta_data("disk", test.queries)) +
                                 option(Option::go, info_data("disk")));
    EXPECT_EQ(outcome.types(), "ACK " + test.types + " INFO ACK");
    const bool meta = test.types.starts_with("META");
    const uint32_t id = test.option == set ? nbd::kBaseAllocationId : 0;
    if (meta) {
      EXPECT_EQ(outcome.answers()[1].payload, be32(id) + base);
    }
    EXPECT_EQ(outcome.negotiated.base_allocation, meta && test.option == set);
  }
}

// Whether BLOCK_STATUS is allowed after these options (structured replies come first).
bool selected(const std::string& options) {
  const Outcome outcome = talk(option(Option::structured_reply) + options);
  EXPECT_TRUE(outcome.in_transmission());
  return outcome.negotiated.base_allocation;
}

TEST(MetaContext, CountsOnlyForTheNameItWasSetFor) {
  const auto set = [](const char* name) {
    return option(Option::set_meta_context, meta_data(name, {"base:allocation"}));
  };
  const auto go = [](const char* name) { return option(Option::go, info_data(name)); };
  EXPECT_TRUE(selected(set("disk") + go("disk")));
  EXPECT_TRUE(selected(set("") + go("")));
  EXPECT_TRUE(selected(set("read-only") + go("read-only")));
  EXPECT_FALSE(selected(set("disk") + go("read-only")));
  // The same export by another name.
  EXPECT_FALSE(selected(set("disk") + go("")));
  EXPECT_FALSE(selected(set("") + go("disk")));
  EXPECT_TRUE(selected(set("disk") + option(Option::export_name, "disk")));
  EXPECT_FALSE(selected(set("disk") + option(Option::export_name, "read-only")));
  // A GO that fails changes nothing; the last SET counts.
  EXPECT_TRUE(selected(set("disk") + go("nosuch") + go("disk")));
  EXPECT_FALSE(selected(set("disk") + set("read-only") + go("disk")));
}

TEST(MetaContext, EverySetReplacesTheOneBeforeEvenIfItFails) {
  const std::string good = option(Option::set_meta_context, meta_data("disk", {"base:allocation"}));
  const std::string go = option(Option::go, info_data("disk"));
  const auto after = [&](const std::string& data) {
    return selected(good + option(Option::set_meta_context, data) + go);
  };
  EXPECT_FALSE(after(meta_data("disk", {})));
  EXPECT_FALSE(after(meta_data("disk", {"base:"})));
  EXPECT_FALSE(after(meta_data("nosuch", {"base:allocation"})));
  EXPECT_FALSE(after("malformed"));
  EXPECT_FALSE(after(""));
  EXPECT_FALSE(after(std::string(40'000, 'x')));
  // LIST leaves it alone.
  EXPECT_TRUE(selected(good + option(Option::list_meta_context, meta_data("read-only", {})) + go));
}

TEST(MetaContext, NeedsStructuredRepliesAndAKnownExport) {
  for (const Option code : {Option::list_meta_context, Option::set_meta_context}) {
    const std::string asks = option(code, meta_data("disk", {"base:allocation"}));
    EXPECT_EQ(talk(asks).types(), "INVALID");
    EXPECT_EQ(talk(option(Option::structured_reply) + asks).types(), "ACK META ACK");
    EXPECT_EQ(
        talk(option(Option::structured_reply) + option(code, meta_data("nosuch", {}))).types(),
        "ACK UNKNOWN");
  }
}

}  // namespace
}  // namespace tuck::test

// What is a request, and which requests may be carried out.
#include "frontends/nbd/request.h"

#include <gtest/gtest.h>

#include <array>
#include <ostream>

#include "tests/nbd/handshake.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::nbd {

static std::ostream& operator<<(std::ostream& out, WireError error) {
  return out << static_cast<uint32_t>(error);
}

}  // namespace tuck::nbd

namespace tuck::test {
namespace {

using nbd::Command;
using nbd::Negotiated;
using nbd::Request;
using nbd::WireError;

constexpr uint64_t kSize = 4u << 20;
constexpr uint32_t kMaxPayload = 32u << 20;

Negotiated writable(uint64_t size = kSize) {
  Negotiated negotiated;
  negotiated.size_bytes = size;
  negotiated.structured_replies = true;
  negotiated.base_allocation = true;
  negotiated.transmission_flags = nbd::kFlagHasFlags;
  return negotiated;
}

Negotiated read_only() {
  Negotiated negotiated = writable();
  negotiated.transmission_flags |= nbd::kFlagReadOnly;
  return negotiated;
}

Request request(Command command, uint64_t offset, uint32_t length, uint16_t flags = 0) {
  return {flags, command, 0x1234, offset, length};
}

// --- Parsing -----------------------------------------------------------------------------------

TEST(ParseRequest, TakesTheFieldsApart) {
  const std::string text = be32(0x25609513) + be16(0x8421) + be16(6) + be64(0x1122334455667788) +
                           be64(0xfedcba9876543210) + be32(0xcafef00d);
  const auto parsed = nbd::parse_request(as_bytes(text).first<nbd::kRequestBytes>());
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->flags, 0x8421);
  EXPECT_EQ(parsed->command, Command::write_zeroes);
  EXPECT_EQ(parsed->cookie, 0x1122334455667788u);
  EXPECT_EQ(parsed->offset, 0xfedcba9876543210u);
  EXPECT_EQ(parsed->length, 0xcafef00du);
}

TEST(ParseRequest, KnowsNoOtherMagic) {
  // Extended requests, the two historic ones, the log's, replies, and one bit off.
  for (const uint32_t magic : {0x21e41c71u, 0x12560953u, 0x96744668u, 0x25609514u, 0x67446698u,
                               0x668e33efu, 0u, 0xffffffffu, 0x25609512u, 0xa5609513u}) {
    const std::string text = be32(magic) + std::string(24, '\0');
    EXPECT_FALSE(nbd::parse_request(as_bytes(text).first<nbd::kRequestBytes>()).has_value());
  }
}

TEST(ParseRequest, OnlyAWriteCarriesAPayload) {
  for (uint16_t command = 0; command < 20; ++command) {
    const Request long_one = request(Command{command}, 0, kMaxPayload + 1);
    EXPECT_EQ(nbd::carries_payload(long_one), command == 1);
    EXPECT_EQ(nbd::payload_too_long(long_one), command == 1);
  }
  EXPECT_FALSE(nbd::payload_too_long(request(Command::write, 0, kMaxPayload)));
  EXPECT_TRUE(nbd::payload_too_long(request(Command::write, 0, 0xffffffff)));
}

// --- Commands and flags ------------------------------------------------------------------------

struct CommandRow {
  Command command;
  uint16_t flags;  // allowed with structured replies
  bool writes;
};

constexpr CommandRow kCommands[] = {
    {Command::read, 0b000101, false},         // FUA, DF
    {Command::write, 0b000001, true},         // FUA
    {Command::trim, 0b000001, true},          //
    {Command::cache, 0b000001, false},        //
    {Command::write_zeroes, 0b010011, true},  // FUA, NO_HOLE, FAST_ZERO
    {Command::block_status, 0b001001, false}  // FUA, REQ_ONE
};

TEST(Validate, FlagsOfEachCommand) {
  for (const CommandRow& row : kCommands) {
    for (uint32_t flags = 0; flags <= 0xffff; ++flags) {
      const Request asked = request(row.command, 4096, 512, static_cast<uint16_t>(flags));
      const auto wanted =
          (flags & ~uint32_t{row.flags}) == 0 ? WireError::none : WireError::invalid;
      ASSERT_EQ(validate(asked, writable()), wanted)
          << static_cast<int>(row.command) << " flags " << flags;
    }
  }
}

TEST(Validate, FlushTakesFuaAndNothingElse) {
  for (uint32_t flags = 0; flags <= 0xffff; ++flags) {
    const Request asked = request(Command::flush, 0, 0, static_cast<uint16_t>(flags));
    ASSERT_EQ(validate(asked, writable()), flags <= 1 ? WireError::none : WireError::invalid);
  }
  EXPECT_EQ(validate(request(Command::flush, 1, 0), writable()), WireError::invalid);
  EXPECT_EQ(validate(request(Command::flush, 0, 1), writable()), WireError::invalid);
  EXPECT_EQ(validate(request(Command::flush, 0, 0), read_only()), WireError::none);
}

TEST(Validate, DfIsForStructuredReplies) {
  const Request asked = request(Command::read, 0, 512, nbd::kCommandDf);
  EXPECT_EQ(validate(asked, writable()), WireError::none);
  Negotiated simple = writable();
  simple.structured_replies = false;
  simple.base_allocation = false;
  EXPECT_EQ(validate(asked, simple), WireError::invalid);
  EXPECT_EQ(validate(request(Command::read, 0, 512), simple), WireError::none);
}

TEST(Validate, UnknownCommands) {
  for (uint32_t command = 8; command <= 0xffff; ++command) {
    ASSERT_EQ(validate(request(Command{static_cast<uint16_t>(command)}, 0, 512), writable()),
              WireError::invalid);
  }
}

TEST(Validate, DisconnectIsAlwaysRight) {
  EXPECT_EQ(validate(request(Command::disconnect, ~0ull, ~0u, 0xffff), read_only()),
            WireError::none);
}

TEST(Validate, ReadOnlyExports) {
  for (const CommandRow& row : kCommands) {
    EXPECT_EQ(validate(request(row.command, 0, 512), read_only()),
              row.writes ? WireError::permission : WireError::none);
    // Wherever the write would have gone.
    if (row.writes) {
      EXPECT_EQ(validate(request(row.command, kSize, 512), read_only()), WireError::permission);
      EXPECT_EQ(validate(request(row.command, 0, 0), read_only()), WireError::permission);
    }
  }
}

TEST(Validate, BlockStatusNeedsItsContext) {
  Negotiated negotiated = writable();
  negotiated.base_allocation = false;
  EXPECT_EQ(validate(request(Command::block_status, 0, 512), negotiated), WireError::invalid);
}

// --- Ranges ------------------------------------------------------------------------------------

struct RangeRow {
  uint64_t offset;
  uint32_t length;
  bool inside;
};

constexpr RangeRow kRanges[] = {
    {0, 1, true},
    {0, kSize, true},
    {kSize - 1, 1, true},
    {12345, 6789, true},
    {0, kSize + 1, false},
    {1, kSize, false},
    {kSize - 1, 2, false},
    {kSize, 1, false},
    {kSize + 1, 1, false},
    {1ull << 63, 512, false},
    // Sums that wrap at 2^64, to 0 and beyond.
    {~0ull, 1, false},
    {~0ull, 2, false},
    {~0ull - 511, 512, false},
    {~0ull - 511, 513, false},
    {~0ull - 511, 1024, false},
    {~0ull - (16u << 20), 32u << 20, false},
};

TEST(Validate, RangesOfEachCommand) {
  for (const CommandRow& row : kCommands) {
    const bool says_no_space =
        row.command == Command::write || row.command == Command::write_zeroes;
    const WireError outside = says_no_space ? WireError::no_space : WireError::invalid;
    for (const RangeRow& range : kRanges) {
      EXPECT_EQ(validate(request(row.command, range.offset, range.length), writable()),
                range.inside ? WireError::none : outside)
          << static_cast<int>(row.command) << " at " << range.offset << " + " << range.length;
    }
  }
}

TEST(Validate, LengthZero) {
  for (const CommandRow& row : kCommands) {
    const bool status = row.command == Command::block_status;
    const bool says_no_space =
        row.command == Command::write || row.command == Command::write_zeroes;
    for (const uint64_t offset : {uint64_t{0}, uint64_t{4096}, kSize}) {
      EXPECT_EQ(validate(request(row.command, offset, 0), writable()),
                status ? WireError::invalid : WireError::none);
    }
    for (const uint64_t offset : {kSize + 1, ~uint64_t{0}}) {
      EXPECT_EQ(validate(request(row.command, offset, 0), writable()),
                says_no_space ? WireError::no_space : WireError::invalid);
    }
  }
}

TEST(Validate, PayloadsHaveALimitAndOtherLengthsHaveNone) {
  const Negotiated huge = writable((1ull << 63) - 1);
  for (const CommandRow& row : kCommands) {
    const bool payload = row.command == Command::read || row.command == Command::write;
    EXPECT_EQ(validate(request(row.command, 4096, kMaxPayload), huge), WireError::none);
    for (const uint32_t length : {kMaxPayload + 1, 33u << 20, 0x80000000u, 0xffffffffu}) {
      EXPECT_EQ(validate(request(row.command, 4096, length), huge),
                payload ? WireError::invalid : WireError::none);
    }
  }
  // A READ of 33 MiB from a disk of 4.
  EXPECT_EQ(validate(request(Command::read, 0, 33u << 20), writable()), WireError::invalid);
}

TEST(Validate, WhatPassesLiesInside) {
  Random random(mix(seed(), 2));
  uint32_t passed = 0;
  for (uint32_t round = 0; round < scaled(500'000); ++round) {
    Request asked;
    asked.flags = static_cast<uint16_t>(random.one_in(2) ? 0 : random.below(64));
    asked.command = Command{static_cast<uint16_t>(random.below(9))};
    // Near both ends of the disk, and of 2^64.
    const uint64_t bases[] = {0, kSize, ~0ull, random.next()};
    asked.offset = bases[random.below(4)] + random.below(8192) - 4096;
    asked.length = static_cast<uint32_t>(random.one_in(4) ? random.next() : random.below(10'000));
    const Negotiated negotiated = random.one_in(4) ? read_only() : writable();
    if (validate(asked, negotiated) != WireError::none) continue;
    if (asked.command == Command::disconnect) continue;
    ++passed;
    const auto end = static_cast<unsigned __int128>(asked.offset) + asked.length;
    ASSERT_TRUE(end <= kSize) << asked.offset << " + " << asked.length;
  }
  EXPECT_GT(passed, 0u);
}

}  // namespace
}  // namespace tuck::test

// Replies, byte by byte.
#include "frontends/nbd/reply.h"

#include <gtest/gtest.h>

#include <array>

#include "frontends/nbd/negotiation.h"
#include "tests/nbd/handshake.h"

namespace tuck::test {
namespace {

using nbd::WireError;
using vm::ByteExtent;
using vm::ExtentKind;

constexpr uint64_t kCookie = 0x0102030405060708;

// What put(out) writes into room bytes; the byte behind them stays as it is.
template <class Put>
std::string written(size_t room, Put put) {
  std::vector<std::byte> memory(room + 1, std::byte{0x5a});
  const size_t bytes = put(std::span(memory).first(room));
  EXPECT_LE(bytes, room);
  EXPECT_EQ(memory[room], std::byte{0x5a});
  return {reinterpret_cast<const char*>(memory.data()), bytes};
}

std::string chunk(uint16_t flags, uint16_t type, const std::string& payload,
                  size_t data_bytes = 0) {
  return be32(0x668e33ef) + be16(flags) + be16(type) + be64(kCookie) +
         be32(payload.size() + data_bytes) + payload;
}

TEST(Reply, Simple) {
  const auto simple = [](WireError error) {
    return written(16, [&](auto out) { return nbd::put_simple_reply(out, kCookie, error); });
  };
  EXPECT_EQ(simple(WireError::none), be32(0x67446698) + be32(0) + be64(kCookie));
  EXPECT_EQ(simple(WireError::no_space), be32(0x67446698) + be32(28) + be64(kCookie));
}

TEST(Reply, ErrorNumbersAreTheProtocols) {
  const std::pair<WireError, uint32_t> numbers[] = {
      {WireError::permission, 1},     {WireError::io, 5},         {WireError::no_memory, 12},
      {WireError::invalid, 22},       {WireError::no_space, 28},  {WireError::overflow, 75},
      {WireError::not_supported, 95}, {WireError::shutdown, 108},
  };
  for (const auto& [error, number] : numbers)
    EXPECT_EQ(static_cast<uint32_t>(error), number);
}

TEST(Reply, None) {
  EXPECT_EQ(written(20, [](auto out) { return nbd::put_none_chunk(out, kCookie); }),
            chunk(1, 0, ""));
}

TEST(Reply, DataHeaderCountsTheDataBehindIt) {
  const auto header = [](uint32_t bytes, bool done) {
    return written(28, [&](auto out) {
      return nbd::put_data_chunk_header(out, kCookie, 0xabcdef0123456789, bytes, done);
    });
  };
  EXPECT_EQ(header(4096, true), chunk(1, 1, be64(0xabcdef0123456789), 4096));
  EXPECT_EQ(header(1, false), chunk(0, 1, be64(0xabcdef0123456789), 1));
  EXPECT_EQ(header(32u << 20, true), chunk(1, 1, be64(0xabcdef0123456789), 32u << 20));
}

TEST(Reply, Hole) {
  const auto hole = [](bool done) {
    return written(
        32, [&](auto out) { return nbd::put_hole_chunk(out, kCookie, 4097, 0xfffffffe, done); });
  };
  EXPECT_EQ(hole(true), chunk(1, 2, be64(4097) + be32(0xfffffffe)));
  EXPECT_EQ(hole(false), chunk(0, 2, be64(4097) + be32(0xfffffffe)));
}

TEST(Reply, Error) {
  EXPECT_EQ(written(nbd::kErrorChunkBytes,
                    [](auto out) { return nbd::put_error_chunk(out, kCookie, WireError::io); }),
            chunk(1, 0x8001, be32(5) + be16(0)));
}

TEST(Reply, StatusTakesTheFormThatWasAgreedOn) {
  const auto status = [](WireError error, bool structured) {
    return written(nbd::kErrorChunkBytes, [&](auto out) {
      return nbd::put_status_reply(out, kCookie, error, structured);
    });
  };
  EXPECT_EQ(status(WireError::none, false), be32(0x67446698) + be32(0) + be64(kCookie));
  EXPECT_EQ(status(WireError::invalid, false), be32(0x67446698) + be32(22) + be64(kCookie));
  EXPECT_EQ(status(WireError::none, true), chunk(1, 0, ""));
  EXPECT_EQ(status(WireError::invalid, true), chunk(1, 0x8001, be32(22) + be16(0)));
}

// --- Block status ------------------------------------------------------------------------------

std::string block_status(std::vector<ByteExtent> extents, uint32_t length, bool only_one = false,
                         size_t room = 1000) {
  return written(room, [&](auto out) {
    return nbd::put_block_status_chunk(out, kCookie, extents, length, only_one);
  });
}

// The payload of base:allocation's extents, each a length and flags.
std::string status_chunk(const std::vector<std::pair<uint64_t, uint32_t>>& extents) {
  std::string payload = be32(nbd::kBaseAllocationId);
  for (const auto& [bytes, flags] : extents)
    payload += be32(bytes) + be32(flags);
  return chunk(1, 5, payload);
}

TEST(BlockStatus, KindsAsHoleAndZero) {
  EXPECT_EQ(block_status(
                {{4096, ExtentKind::hole}, {100, ExtentKind::zero}, {512, ExtentKind::data}}, 4708),
            status_chunk({{4096, 3}, {100, 2}, {512, 0}}));
}

TEST(BlockStatus, EndsWithTheRequest) {
  const std::vector<ByteExtent> extents = {{4096, ExtentKind::hole},
                                           {1ull << 40, ExtentKind::data}};
  EXPECT_EQ(block_status(extents, 5000), status_chunk({{4096, 3}, {904, 0}}));
  EXPECT_EQ(block_status(extents, 4096), status_chunk({{4096, 3}}));
  EXPECT_EQ(block_status(extents, 1), status_chunk({{1, 3}}));
}

TEST(BlockStatus, LongestRequestDoesNotOverflow) {
  for (const uint32_t length : {0xffffffffu, 0xfffffffeu, 0xfffff000u, 0x80000000u}) {
    for (const uint64_t bytes :
         {uint64_t{1} << 32, (uint64_t{1} << 32) + 4096, ~uint64_t{0}, uint64_t{length}}) {
      EXPECT_EQ(block_status({{bytes, ExtentKind::hole}}, length), status_chunk({{length, 3}}));
      EXPECT_EQ(block_status({{100, ExtentKind::data}, {bytes, ExtentKind::hole}}, length),
                status_chunk({{100, 0}, {length - 100, 3}}));
    }
  }
}

TEST(BlockStatus, OnlyOne) {
  const std::vector<ByteExtent> extents = {{4096, ExtentKind::hole}, {4096, ExtentKind::data}};
  EXPECT_EQ(block_status(extents, 8192, true), status_chunk({{4096, 3}}));
  EXPECT_EQ(block_status(extents, 100, true), status_chunk({{100, 3}}));
}

TEST(BlockStatus, AsManyAsFit) {
  const std::vector<ByteExtent> extents(10, {1, ExtentKind::data});
  const std::string three = status_chunk({{1, 0}, {1, 0}, {1, 0}});
  EXPECT_EQ(block_status(extents, 10, false, nbd::block_status_bytes(3)), three);
  EXPECT_EQ(block_status(extents, 10, false, nbd::block_status_bytes(3) + 7), three);
  EXPECT_EQ(block_status(extents, 10, false, nbd::block_status_bytes(1)), status_chunk({{1, 0}}));
}

TEST(BlockStatus, EmptyExtentsAreLeftOut) {
  EXPECT_EQ(block_status({{0, ExtentKind::hole}, {5, ExtentKind::data}}, 5),
            status_chunk({{5, 0}}));
  EXPECT_EQ(block_status({{0, ExtentKind::hole}, {5, ExtentKind::data}}, 5, true),
            status_chunk({{5, 0}}));
}

// --- Errors of the swap area -------------------------------------------------------------------

TEST(WireErrors, OfTheSwapArea) {
  EXPECT_EQ(nbd::wire_error_of(Errc::ok), WireError::none);
  EXPECT_EQ(nbd::wire_error_of(Errc::no_space), WireError::no_space);
  EXPECT_EQ(nbd::wire_error_of(Errc::corrupt), WireError::io);
  EXPECT_EQ(nbd::wire_error_of(Errc::out_of_range), WireError::invalid);
  EXPECT_EQ(nbd::wire_error_of(Errc::invalid), WireError::invalid);
  EXPECT_EQ(nbd::wire_error_of(Errc::shutting_down), WireError::shutdown);
}

}  // namespace
}  // namespace tuck::test

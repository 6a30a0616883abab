// The transmission machine between two buffers, without any I/O: how long a turn is, and what the
// latency of a request begins with.
#include "frontends/nbd/transmission.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "frontends/nbd/clock.h"
#include "tests/nbd/machine.h"

namespace tuck::test {
namespace {

using nbd::Progress;

constexpr uint64_t kDiskBytes = 4u << 20;

constexpr uint16_t kRead = 0;
constexpr uint16_t kWrite = 1;
constexpr uint16_t kFlush = 3;
constexpr uint16_t kCache = 5;
constexpr uint16_t kNobodyKnows = 77;

uint64_t slowest_ns(const Machine& machine, nbd::Operation which) {
  HistogramSnapshot snapshot;
  machine.operation(which).latency.add_to(snapshot);
  return snapshot.percentile(1.0);
}

// Requests that touch no page are work as well.
TEST(Transmission, ATurnHasAnEndWhateverIsAsked) {
  const std::pair<const char*, std::string> kinds[] = {
      {"FLUSH", header(kFlush, 1, 0, 0)},           {"CACHE", header(kCache, 1, 0, kPageSize)},
      {"refused", header(kRead, 1, kDiskBytes, 1)}, {"unknown", header(kNobodyKnows, 1, 0, 0)},
      {"READ of nothing", header(kRead, 1, 0, 0)},  {"WRITE of nothing", header(kWrite, 1, 0, 0)},
  };
  constexpr size_t kRequests = 5 * nbd::kRequestsATurnMax;
  Disk disk;
  for (const auto& [name, one] : kinds) {
    Machine machine(disk);
    std::string all;
    for (size_t i = 0; i < kRequests; ++i)
      all += one;
    machine.receive(all, nbd::now_ns());
    for (size_t turn = 1; turn < 5; ++turn) {
      ASSERT_EQ(machine.turn(), Progress::yields) << name;
      ASSERT_EQ(machine.unread(), all.size() - turn * nbd::kRequestsATurnMax * one.size()) << name;
    }
    EXPECT_EQ(machine.turn(), Progress::needs_input) << name;
    EXPECT_EQ(machine.unread(), 0u) << name;
  }
}

// The clock starts when all of a request is there: a slow client is not a slow server.
TEST(Transmission, LatencyBeginsWithTheLastByteOfTheRequest) {
  // Later than any end: the latency that counts from it is 0.
  constexpr uint64_t kLater = UINT64_MAX;
  constexpr uint64_t kLongAgo = 1;
  const std::string payload(3 * kPageSize, 'p');
  Disk disk;
  for (const uint64_t offset : {uint64_t{0}, kDiskBytes - kPageSize}) {  // stored; refused
    Machine machine(disk);
    machine.receive(header(kWrite, 1, offset, static_cast<uint32_t>(payload.size())), kLongAgo);
    ASSERT_EQ(machine.turn(), Progress::needs_input);
    machine.receive(payload.substr(0, kPageSize), kLongAgo);
    ASSERT_EQ(machine.turn(), Progress::needs_input);
    machine.receive(payload.substr(kPageSize), kLater);
    ASSERT_EQ(machine.turn(), Progress::needs_input);
    ASSERT_EQ(machine.operation(nbd::Operation::write).requests.get(), 1u);
    EXPECT_EQ(slowest_ns(machine, nbd::Operation::write), 0u) << "at " << offset;
  }
  // Whole from the start: from there.
  Machine machine(disk);
  machine.receive(header(kWrite, 1, 0, static_cast<uint32_t>(payload.size())) + payload, kLongAgo);
  ASSERT_EQ(machine.turn(), Progress::needs_input);
  EXPECT_GT(slowest_ns(machine, nbd::Operation::write), 0u);
}

// Several receives may have come before the first of their requests has its turn.
TEST(Transmission, LatencyBeginsWithTheReceiveThatBroughtTheEndOfTheRequest) {
  constexpr uint64_t kLater = UINT64_MAX;
  constexpr uint64_t kLongAgo = 1;
  Disk disk;
  Machine machine(disk);
  const std::string flush = header(kFlush, 1, 0, 0);
  machine.receive(flush + flush.substr(0, 5), kLongAgo);
  machine.receive(flush.substr(5) + header(kCache, 1, 0, 1), kLater);
  machine.receive(header(kRead, 1, 0, 1).substr(0, 20), kLongAgo);
  ASSERT_EQ(machine.turn(), Progress::needs_input);
  machine.receive(header(kRead, 1, 0, 1).substr(20), kLater);
  ASSERT_EQ(machine.turn(), Progress::needs_input);
  EXPECT_GT(slowest_ns(machine, nbd::Operation::flush), 0u) << "the first";
  HistogramSnapshot flushes;
  machine.operation(nbd::Operation::flush).latency.add_to(flushes);
  EXPECT_EQ(flushes.percentile(0.25), 0u) << "the second";
  EXPECT_EQ(slowest_ns(machine, nbd::Operation::cache), 0u);
  EXPECT_EQ(slowest_ns(machine, nbd::Operation::read), 0u);
}

}  // namespace
}  // namespace tuck::test

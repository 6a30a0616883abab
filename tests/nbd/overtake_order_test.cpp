// READs that overtake: which of them do, and which keep their place.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/nbd/commands.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/machine.h"
#include "tests/nbd/stream_oracle.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

using nbd::Progress;

constexpr uint32_t kPage = kPageSize;
constexpr uint64_t kFar = 1u << 20;  // a part of the disk that nothing else touches

std::string write(uint64_t cookie, uint64_t offset, uint32_t length) {
  return header(kWrite, cookie, offset, length) +
         std::string(length, static_cast<char>(cookie + 1));
}
std::string read(uint64_t cookie, uint64_t offset, uint32_t length = kPage) {
  return header(kRead, cookie, offset, length);
}

// A client that knows what it asked for: replies are judged, and their order is kept.
class Session {
 public:
  explicit Session(Disk& disk, bool structured = false)
      : machine_(disk, {structured, structured, false}),
        oracle_({disk.area().size_bytes(), structured, structured, false}) {}

  Machine& machine() { return machine_; }
  void send(const std::string& bytes) {
    ASSERT_EQ(machine_.receive(bytes), bytes.size()) << "more than a receive";
    oracle_.sent(as_bytes(bytes));
  }
  Progress turn() {
    const Progress progress = machine_.turn();
    const std::string said = machine_.heard();
    EXPECT_EQ(oracle_.received(as_bytes(said)), "");
    return progress;
  }
  Progress turns() {
    Progress progress;
    do {
      progress = turn();
    } while (progress == Progress::yields || progress == Progress::needs_room);
    return progress;
  }
  // Cookies of the replies since the last call, in the order in which they came.
  std::vector<uint64_t> order() { return oracle_.answered(); }
  size_t outstanding() const { return oracle_.outstanding(); }

 private:
  Machine machine_;
  StreamOracle oracle_;
};

using Order = std::vector<uint64_t>;

TEST(Overtake, AReadIsServedBeforeTheWritesQueuedInFrontOfIt) {
  for (const bool structured : {false, true}) {
    Disk disk;
    Session session(disk, structured);
    std::string burst;
    Order expected = {60};
    for (uint64_t i = 0; i < 60; ++i) {
      burst += write(i, i * kPage, kPage);
      expected.push_back(i);
    }
    session.send(burst + read(60, kFar));
    EXPECT_EQ(session.turns(), Progress::needs_input);
    EXPECT_EQ(session.order(), expected);
  }
}

TEST(Overtake, AReadOfWhatIsBeingWrittenKeepsItsPlace) {
  const std::pair<const char*, std::string> kinds[] = {
      {"WRITE", write(0, 2 * kPage, kPage)},
      {"TRIM", header(kTrim, 0, 2 * kPage, kPage)},
      {"WRITE_ZEROES", header(kWriteZeroes, 0, 2 * kPage, kPage)},
  };
  struct Case {
    uint64_t offset;
    uint32_t length;
    bool overtakes;
  };
  const Case cases[] = {
      {2 * kPage, kPage, false},         {kPage, 3 * kPage, false},
      {2 * kPage + 100, 8, false},       {2 * kPage, 1, false},
      {3 * kPage - 1, 1, false},         {kPage, kPage + 1, false},
      {3 * kPage - 1, 2 * kPage, false}, {kPage, kPage, true},
      {3 * kPage, kPage, true},          {2 * kPage - 1, 1, true},
  };
  for (const auto& [name, modification] : kinds) {
    for (const Case& c : cases) {
      Disk disk;
      Session session(disk);
      session.send(write(7, 0, 8 * kPage));
      ASSERT_EQ(session.turns(), Progress::needs_input);
      session.order();
      session.send(modification + read(1, c.offset, c.length));
      EXPECT_EQ(session.turns(), Progress::needs_input);
      EXPECT_EQ(session.order(), (c.overtakes ? Order{1, 0} : Order{0, 1}))
          << name << ", READ of " << c.length << " at " << c.offset;
    }
  }
}

TEST(Overtake, AReadPassesTheOnesThatHaveToStay) {
  Disk disk;
  Session session(disk);
  // 2 reads what 0 writes, 4 what 3 writes; 5 is free to go, and passes everything.
  session.send(write(0, 0, kPage) + write(1, kPage, kPage) + read(2, 100, 8) +
               write(3, 9 * kPage, kPage) + read(4, 8 * kPage, 2 * kPage) + read(5, kFar));
  EXPECT_EQ(session.turns(), Progress::needs_input);
  EXPECT_EQ(session.order(), (Order{5, 0, 1, 2, 3, 4}));
}

TEST(Overtake, OtherRequestsKeepTheirPlace) {
  Disk disk;
  Session session(disk, true);
  session.send(write(0, 0, kPage) + header(kFlush, 1, 0, 0) + header(kCache, 2, kFar, kPage) +
               header(kBlockStatus, 3, kFar, kPage) + read(4, kFar));
  EXPECT_EQ(session.turns(), Progress::needs_input);
  EXPECT_EQ(session.order(), (Order{4, 0, 1, 2, 3}));
}

TEST(Overtake, WhatIsRefusedKeepsItsPlaceAndStandsInNobodysWay) {
  const uint64_t end = DiskOptions{}.bytes;
  Disk disk;
  Session session(disk);
  // A WRITE past the end touches nothing: the READ of the last page may pass it.
  session.send(write(0, 0, kPage) + write(1, end - kPage, 2 * kPage) + read(2, end - 1, 2) +
               header(77, 3, kFar, kPage) + header(kRead, 4, kFar, kPage, 1u << 9) +
               read(5, end - kPage));
  EXPECT_EQ(session.turns(), Progress::needs_input);
  EXPECT_EQ(session.order(), (Order{5, 0, 1, 2, 3, 4}));
}

TEST(Overtake, LongReadsKeepTheirPlace) {
  for (const bool structured : {false, true}) {
    Disk disk;
    Session session(disk, structured);
    session.send(write(0, 0, kPage) + read(1, kFar, nbd::kReadAheadBytesMax + 1) +
                 read(2, kFar, nbd::kReadAheadBytesMax));
    EXPECT_EQ(session.turns(), Progress::needs_input);
    EXPECT_EQ(session.order(), (Order{2, 0, 1}));
  }
}

TEST(Overtake, WhatComesBehindAPayloadThatIsNotThereIsNotKnown) {
  Disk disk;
  Session session(disk);
  const std::string two = write(1, 0, 2 * kPage);
  session.send(write(0, 8 * kPage, kPage) + two.substr(0, 3000));
  EXPECT_EQ(session.turns(), Progress::needs_input);
  EXPECT_EQ(session.order(), Order{0});
  // It goes on where it was, but the READ behind it is first.
  session.send(two.substr(3000) + read(2, kFar) + read(3, kPage));
  EXPECT_EQ(session.turns(), Progress::needs_input);
  EXPECT_EQ(session.order(), (Order{2, 1, 3}));
}

TEST(Overtake, NothingBehindTheEndIsServed) {
  for (const std::string& end : {header(kDisconnect, 1, 0, 0), std::string(nbd::kRequestBytes, 'x'),
                                 header(kWrite, 1, 0, nbd::kPayloadBytesMax + 1)}) {
    Disk disk;
    Machine machine(disk);
    machine.receive(write(0, 0, kPage) + end + read(2, kFar));
    const Progress progress = machine.turns();
    EXPECT_TRUE(progress == Progress::disconnected || progress == Progress::broken);
    EXPECT_EQ(machine.heard().size(), nbd::kSimpleReplyBytes);
  }
}

// A request that takes many turns: what comes between two of them passes it.
TEST(Overtake, ReadsComeBetweenTheTurnsOfALongRequest) {
  for (const uint16_t command : {kTrim, kWriteZeroes}) {
    DiskOptions options;
    options.bytes = 256u << 20;
    Disk disk(options);
    Session session(disk);
    session.send(header(command, 0, 0, 128u << 20) + read(1, 200u << 20));
    Order expected = {1};
    Progress progress = session.turn();
    for (uint64_t i = 2; progress == Progress::yields && i < 12; ++i) {
      EXPECT_TRUE(session.machine().inside_request());
      session.send(read(i, (200u << 20) + i) + header(kFlush, 100 + i, 0, 0));
      expected.push_back(i);
      progress = session.turn();
    }
    ASSERT_EQ(progress, Progress::yields);
    EXPECT_EQ(session.order(), expected);
    session.send(read(50, 0));
    EXPECT_EQ(session.turns(), Progress::needs_input);
    const Order rest = session.order();
    EXPECT_EQ(rest.front(), 0u);
    EXPECT_EQ(rest.back(), 50u);
    EXPECT_FALSE(session.machine().inside_request());
  }
}

TEST(Overtake, NoRequestIsPassedByMoreReadsThanStated) {
  Disk disk;
  Session session(disk);
  std::string burst = write(0, 0, kPage) + write(1, kPage, kPage);
  for (uint64_t i = 0; i < nbd::kReadsAheadMax + 36; ++i)
    burst += read(100 + i, kFar + i * kPage);
  session.send(burst + write(2, 3 * kPage, kPage));
  EXPECT_EQ(session.turns(), Progress::needs_input);
  const Order order = session.order();
  ASSERT_EQ(order.size(), nbd::kReadsAheadMax + 36 + 3);
  EXPECT_EQ(order[nbd::kReadsAheadMax], 0u);
  EXPECT_EQ(order[nbd::kReadsAheadMax + 1], 1u);
  EXPECT_EQ(order.back(), 2u);
}

// Its header is used up when it is set aside for the READs behind it.
TEST(Overtake, NorIsARequestWithoutPayload) {
  constexpr uint32_t kHalf = 32u << 20;
  for (const uint16_t command : {kTrim, kWriteZeroes}) {
    DiskOptions options;
    options.bytes = 2 * uint64_t{kHalf};
    Disk disk(options);
    Session session(disk);
    constexpr uint64_t kReads = 600;
    std::string burst = header(command, 0, 0, kHalf);
    for (uint64_t i = 0; i < kReads; ++i)
      burst += read(100 + i, kHalf + i * kPage);
    session.send(burst);
    EXPECT_EQ(session.turns(), Progress::needs_input);
    const Order order = session.order();
    ASSERT_EQ(order.size(), kReads + 1);
    const auto passed = std::find(order.begin(), order.end(), 0u) - order.begin();
    EXPECT_LE(passed, static_cast<std::ptrdiff_t>(nbd::kReadsAheadMax));
  }
}

// More ranges than are looked past: found later, and in order where it matters.
TEST(Overtake, ManySmallRequestsInFront) {
  Disk disk;
  Session session(disk);
  constexpr uint64_t kTrims = 2 * nbd::kLookedPastMax + 10;
  std::string burst;
  for (uint64_t i = 0; i < kTrims; ++i)
    burst += header(kTrim, i, i * kPage, kPage);
  session.send(burst + read(1000, kFar + kFar) + read(1001, (kTrims - 1) * kPage));
  EXPECT_EQ(session.turns(), Progress::needs_input);
  const Order order = session.order();
  ASSERT_EQ(order.size(), kTrims + 2);
  EXPECT_EQ(order.back(), 1001u);
  EXPECT_NE(order[kTrims], 1000u) << "passed at least the last";
  EXPECT_NE(order.front(), 1000u) << "was seen past more than the list holds";
}

// --- Stores that wait for room -----------------------------------------------------------------

constexpr uint64_t kWaitingReserve = 256u << 10;

Disk waiting_disk() {
  DiskOptions options;
  options.bytes = 64u << 20;
  options.engine.empty_reserve = engine::EmptyReserve::wait;
  options.engine.reserve_bytes = kWaitingReserve;
  return Disk(options);
}

std::string noise(uint64_t cookie, uint64_t offset, uint32_t length) {
  Random random(mix(seed(), cookie));
  std::string text = header(kWrite, cookie, offset, length);
  for (uint32_t i = 0; i < length; ++i)
    text += static_cast<char>(random.next() >> 17);
  return text;
}

// Writes until the machine waits for room; the request that waits has this cookie.
void fill_until_it_waits(Session& session, uint64_t* cookie, uint32_t length) {
  for (*cookie = 0; *cookie < 1000; ++*cookie) {
    session.send(noise(*cookie, *cookie * length, length));
    if (session.turns() == Progress::waits) return;
  }
  FAIL() << "the reserve has no end";
}

TEST(Overtake, ReadsPassAWriteThatWaitsForRoom) {
  for (const uint32_t length : {kPage, 48 * kPage}) {
    Disk disk = waiting_disk();
    Session session(disk);
    uint64_t waiting = 0;
    fill_until_it_waits(session, &waiting, length);
    if (HasFatalFailure()) return;
    session.order();
    const uint64_t there = waiting * length;
    session.send(read(2001, 50u << 20) + read(2002, there) + header(kFlush, 2003, 0, 0));
    EXPECT_EQ(session.turns(), Progress::waits);
    EXPECT_EQ(session.order(), Order{2001});
    // What comes later passes it as well, and so does what was stored before.
    session.send(read(2004, 0) + read(2005, there + length) + read(2006, there + length - 1, 2));
    EXPECT_EQ(session.turns(), Progress::waits);
    EXPECT_EQ(session.order(), (waiting == 0 ? Order{2005} : Order{2004, 2005}));
    EXPECT_EQ(session.machine().counters().requests_pending.get(), 1u);
    while (session.turns() == Progress::waits)
      ASSERT_TRUE(session.machine().make_room());
    const Order rest = session.order();
    ASSERT_GE(rest.size(), 4u);
    EXPECT_EQ(rest[0], waiting);
    EXPECT_EQ(rest[1], 2002u);
    EXPECT_EQ(rest[2], 2003u);
    EXPECT_EQ(session.outstanding(), 0u);
    disk.engine().verify();
  }
}

TEST(Overtake, AWriteThatWaitsIsNotPassedForEver) {
  Disk disk = waiting_disk();
  Session session(disk);
  uint64_t waiting = 0;
  fill_until_it_waits(session, &waiting, kPage);
  if (HasFatalFailure()) return;
  session.order();
  uint64_t sent = 0;
  for (int round = 0; round < 20; ++round) {
    std::string reads;
    for (int i = 0; i < 10; ++i, ++sent)
      reads += read(2000 + sent, (50u << 20) + sent);
    session.send(reads);
    EXPECT_EQ(session.turns(), Progress::waits);
  }
  EXPECT_EQ(session.order().size(), nbd::kReadsAheadMax);
  ASSERT_TRUE(session.machine().make_room());
  while (session.turns() == Progress::waits)
    ASSERT_TRUE(session.machine().make_room());
  EXPECT_EQ(session.order().front(), waiting);
  EXPECT_EQ(session.outstanding(), 0u);
}

}  // namespace
}  // namespace tuck::test

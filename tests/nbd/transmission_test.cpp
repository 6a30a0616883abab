// The transmission machine between two buffers, without any I/O: how long a turn is, and what the
// latency of a request begins with.
#include "frontends/nbd/transmission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "frontends/nbd/clock.h"
#include "tests/nbd/exports.h"
#include "tests/nbd/handshake.h"

namespace tuck::test {
namespace {

using nbd::Progress;

constexpr uint16_t kRead = 0;
constexpr uint16_t kWrite = 1;
constexpr uint16_t kFlush = 3;
constexpr uint16_t kCache = 5;
constexpr uint16_t kNobodyKnows = 77;

std::string header(uint16_t command, uint64_t cookie, uint64_t offset, uint32_t length) {
  return be32(nbd::kRequestMagic) + be16(0) + be16(command) + be64(cookie) + be64(offset) +
         be32(length);
}

// One connection's machine, fed by hand.
class Machine {
 public:
  Machine() {
    in_.reset(receive_);
    out_.reset({std::span(send_).first(nbd::kSendBytes), std::span(send_).last(nbd::kSendBytes)});
    nbd::Negotiated agreed;
    agreed.export_ = &Exports::pair()[0];
    agreed.size_bytes = kDiskBytes;
    transmission_ = std::make_unique<nbd::Transmission>(agreed, ticket_, counters_);
  }

  void receive(std::string_view bytes, uint64_t at_ns) {
    const auto room = in_.free_part();
    ASSERT_GE(room.size(), bytes.size());
    std::ranges::copy(as_bytes(bytes), room.begin());
    in_.received(bytes.size(), at_ns);
  }
  // One turn; what it said is taken by the client at once.
  Progress turn() {
    const Progress progress = transmission_->run(in_, out_);
    while (!out_.empty())
      out_.sent(out_.to_send().size());
    return progress;
  }
  const nbd::OperationCounters& operation(nbd::Operation which) const {
    return counters_.operations[static_cast<size_t>(which)];
  }
  uint64_t slowest_ns(nbd::Operation which) const {
    HistogramSnapshot snapshot;
    operation(which).latency.add_to(snapshot);
    return snapshot.percentile(1.0);
  }
  size_t unread() const { return in_.size(); }

 private:
  static void never_notified(engine::Ticket&) noexcept { ADD_FAILURE() << "nothing waits here"; }

  std::vector<std::byte> receive_{nbd::kReceiveBytes};
  std::vector<std::byte> send_{2 * nbd::kSendBytes};
  engine::Ticket ticket_{&never_notified, nullptr};
  nbd::WorkerCounters counters_;
  nbd::ReceiveBuffer in_;
  nbd::SendBuffers out_;
  std::unique_ptr<nbd::Transmission> transmission_;
};

// Requests that touch no page are work as well.
TEST(Transmission, ATurnHasAnEndWhateverIsAsked) {
  const std::pair<const char*, std::string> kinds[] = {
      {"FLUSH", header(kFlush, 1, 0, 0)},           {"CACHE", header(kCache, 1, 0, kPageSize)},
      {"refused", header(kRead, 1, kDiskBytes, 1)}, {"unknown", header(kNobodyKnows, 1, 0, 0)},
      {"READ of nothing", header(kRead, 1, 0, 0)},  {"WRITE of nothing", header(kWrite, 1, 0, 0)},
  };
  constexpr size_t kRequests = 5 * nbd::kRequestsATurnMax;
  for (const auto& [name, one] : kinds) {
    Machine machine;
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
  for (const uint64_t offset : {uint64_t{0}, kDiskBytes - kPageSize}) {  // stored; refused
    Machine machine;
    machine.receive(header(kWrite, 1, offset, static_cast<uint32_t>(payload.size())), kLongAgo);
    ASSERT_EQ(machine.turn(), Progress::needs_input);
    machine.receive(payload.substr(0, kPageSize), kLongAgo);
    ASSERT_EQ(machine.turn(), Progress::needs_input);
    machine.receive(payload.substr(kPageSize), kLater);
    ASSERT_EQ(machine.turn(), Progress::needs_input);
    ASSERT_EQ(machine.operation(nbd::Operation::write).requests.get(), 1u);
    EXPECT_EQ(machine.slowest_ns(nbd::Operation::write), 0u) << "at " << offset;
  }
  // Whole from the start: from there.
  Machine machine;
  machine.receive(header(kWrite, 1, 0, static_cast<uint32_t>(payload.size())) + payload, kLongAgo);
  ASSERT_EQ(machine.turn(), Progress::needs_input);
  EXPECT_GT(machine.slowest_ns(nbd::Operation::write), 0u);
}

}  // namespace
}  // namespace tuck::test

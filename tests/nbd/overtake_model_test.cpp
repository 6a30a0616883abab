// A client that pipelines requests of all kinds over a few pages, so that most of them overlap, in
// random pieces, and takes the replies in random pieces: every reply is what the order in which the
// requests were sent makes it, whoever overtook whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/nbd/handshake.h"
#include "tests/nbd/machine.h"
#include "tests/nbd/stream_oracle.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

using nbd::Progress;

constexpr uint64_t kDisk = (400u << 10) + 100;

// One request, most of them right.
std::string random_request(Random& random, uint64_t cookie) {
  const uint64_t page = random.below(kDisk / kPageSize);
  uint64_t offset = random.one_in(2) ? page * kPageSize : random.below(kDisk);
  uint64_t length = random.one_in(3)   ? kPageSize
                    : random.one_in(3) ? random.between(1, 3 * kPageSize)
                    : random.one_in(9) ? random.between(1, kDisk)
                                       : random.between(1, 200);
  if (!random.one_in(50)) length = std::min(length, kDisk - offset);
  if (random.one_in(60)) length = 0;
  constexpr uint16_t kCommands[] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 4, 6, 6, 3, 5, 7, 9};
  const uint16_t command = kCommands[random.below(std::size(kCommands))];
  uint16_t flags = 0;
  if (random.one_in(10)) flags = static_cast<uint16_t>(1u << random.below(6));
  if (command == 3 && !random.one_in(9)) offset = length = 0;
  std::string text = header(command, cookie, offset, static_cast<uint32_t>(length), flags);
  if (command == 1) {
    const bool noisy = random.one_in(2);
    for (uint64_t i = 0; i < length; ++i) {
      text += static_cast<char>(noisy ? random.next() >> 9 : cookie + i / 512);
    }
  }
  return text;
}

struct Play {
  bool structured = false;
  bool waiting = false;
  engine::CodecSetting codec;
};

void play(const Play& how) {
  Random random(mix(seed(), how.structured ? 1 : how.waiting ? 2 : 0));
  DiskOptions options;
  options.bytes = kDisk;
  options.codec = how.codec;
  if (how.waiting) options.engine.empty_reserve = engine::EmptyReserve::wait;
  options.engine.reserve_bytes = 128u << 10;
  Disk disk(options);
  uint64_t waited = 0;
  const uint32_t sessions = scaled(8);
  for (uint32_t session = 0; session < sessions; ++session) {
    Machine machine(disk, {how.structured, how.structured, false});
    StreamOracle oracle({kDisk, how.structured, how.structured, false});
    disk.clear();
    std::string stream;
    uint64_t cookie = 0;
    Progress progress = Progress::needs_input;
    for (int step = 0; step < 400 || !stream.empty() || oracle.outstanding() != 0; ++step) {
      ASSERT_LT(step, 100'000) << "requests stay without an answer";
      while (step < 400 && stream.size() < 100'000)
        stream += random_request(random, cookie++);
      const size_t piece = random.one_in(4) ? random.below(60) : random.below(300'000);
      const size_t taken = machine.receive(std::string_view(stream).substr(0, piece));
      oracle.sent(as_bytes(stream).first(taken));
      stream.erase(0, taken);
      progress = machine.run();
      ASSERT_NE(progress, Progress::broken) << machine.reason();
      waited += progress == Progress::waits;
      if (!random.one_in(4)) {
        const std::string said = machine.take(random.one_in(4) ? random.below(100) : 1u << 20);
        ASSERT_EQ(oracle.received(as_bytes(said)), "")
            << "in session " << session << ", step " << step;
      }
      if (random.one_in(3)) machine.make_room();
    }
    EXPECT_EQ(progress, Progress::needs_input);
    ASSERT_EQ(oracle.judge_disk(disk.contents()), "") << "in session " << session;
  }
  EXPECT_EQ(waited != 0, how.waiting);
  disk.engine().verify();
}

TEST(OvertakeModel, EveryReplyIsWhatTheOrderOfRequestsMakesIt) {
  play({});
}

TEST(OvertakeModel, TheSameWithStructuredReplies) {
  play({true, false, {engine::CodecKind::zstd, 1}});
}

TEST(OvertakeModel, TheSameWithStoresThatWait) {
  play({true, true, {}});
}

}  // namespace
}  // namespace tuck::test

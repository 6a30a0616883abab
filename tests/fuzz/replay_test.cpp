// Seeds and findings through every target, and mutations of them that are the same on every
// machine: what fuzzing has found once is found again here, without a fuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/fuzz/fuzz_targets.h"
#include "tests/nbd/handshake.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

constexpr size_t kInputBytesMax = 16u << 10;

std::string hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// A few changes, as a fuzzer makes them.
std::string mutated(Random& random, const std::vector<FuzzSeed>& seeds) {
  std::string text = seeds[random.below(seeds.size())].bytes;
  for (uint64_t changes = random.between(1, 6); changes != 0; --changes) {
    const size_t at = random.below(text.size() + 1);
    const size_t length = random.below(std::min<size_t>(text.size() - at, 64) + 1);
    switch (random.below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random.next());
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.insert(at, random.below(20), static_cast<char>(random.one_in(2) ? 0 : 0xff));
        break;
      default: {
        const std::string& other = seeds[random.below(seeds.size())].bytes;
        const size_t from = random.below(other.size() + 1);
        text.insert(at, other.substr(from, random.below(200)));
      }
    }
  }
  text.resize(std::min(text.size(), kInputBytesMax));
  return text;
}

class Replay : public testing::TestWithParam<FuzzTarget> {
 protected:
  // False: enough has been found.
  static bool run(const std::string& name, const std::string& bytes) {
    const std::string wrong = GetParam().run(as_bytes(bytes));
    EXPECT_EQ(wrong, "") << name << ", " << hex(bytes);
    return wrong.empty();
  }
};

TEST_P(Replay, Seeds) {
  const auto seeds = fuzz_seeds(GetParam().name);
  ASSERT_FALSE(seeds.empty());
  for (const FuzzSeed& seed : seeds) {
    if (!run(seed.name, seed.bytes)) return;
  }
}

TEST_P(Replay, Mutations) {
  const auto seeds = fuzz_seeds(GetParam().name);
  Random random(20261201);
  for (uint32_t left = scaled(GetParam().mutations); left != 0; --left) {
    if (!run("a mutation", mutated(random, seeds))) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, testing::ValuesIn(kFuzzTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace tuck::test

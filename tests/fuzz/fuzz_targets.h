// What is fuzzed, as plain functions: bytes in, and a line that says what was wrong (empty:
// nothing). libfuzzer_main.cpp puts libFuzzer in front of one of them; replay_test.cpp feeds them
// seeds and a few thousand mutations, so that every build of the tests has its share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuck::test {

using FuzzInput = std::span<const std::byte>;

// The handshake as a machine: in random pieces the same as in one.
std::string fuzz_negotiation(FuzzInput input);
// The transmission machine over a small real engine: replies and disk judged by an oracle.
std::string fuzz_transmission(FuzzInput input);
// Server::serve_one() on a socket, as `tuck serve --stdio` runs it: the client's whole stream.
std::string fuzz_session(FuzzInput input);

struct FuzzTarget {
  const char* name;
  std::string (*run)(FuzzInput input);
  uint32_t mutations;  // in a run of the tests: a few seconds of them
};
inline constexpr FuzzTarget kFuzzTargets[] = {
    {"negotiation", fuzz_negotiation, 100'000},
    {"transmission", fuzz_transmission, 4'000},
    {"session", fuzz_session, 1'000},
};

struct FuzzSeed {
  std::string name;
  std::string bytes;
};
// Made here from the protocol's constants, and what fuzzing has found (findings/, as hexadecimal).
std::vector<FuzzSeed> fuzz_seeds(std::string_view target);

}  // namespace tuck::test

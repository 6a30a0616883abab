#include <algorithm>

#include "tests/fuzz/controls.h"
#include "tests/fuzz/request_stream.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/machine.h"
#include "tests/nbd/stream_oracle.h"

namespace tuck::test {

namespace {

using nbd::Progress;

// How often the engine looks at itself, in inputs.
constexpr uint64_t kVerifyEvery = 64;
// Far more than any input needs, whatever the pieces.
constexpr uint64_t kStepsMax = 1'000'000;

struct Variant {
  explicit Variant(uint8_t byte)
      : structured((byte & 1) != 0),
        base_allocation((byte & 3) == 3),
        read_only((byte & 0x1c) == 0x1c),
        waiting((byte & 0x20) != 0),
        raw((byte & 0x40) != 0) {}
  bool structured;
  bool base_allocation;
  bool read_only;
  bool waiting;  // stores wait for the reserve
  bool raw;      // the input is the client's stream, not its short form
};

Disk& disk_of(const Variant& variant) {
  static Disk plain([] {
    DiskOptions options;
    options.bytes = kFuzzDiskBytes;
    options.codec = {engine::CodecKind::zstd, 1};
    return options;
  }());
  static Disk waiting([] {
    DiskOptions options;
    options.bytes = kFuzzDiskBytes;
    options.engine.empty_reserve = engine::EmptyReserve::wait;
    options.engine.reserve_bytes = 128u << 10;
    return options;
  }());
  return variant.waiting ? waiting : plain;
}

class Play {
 public:
  Play(const Variant& variant, std::string stream, uint8_t in_seed, uint8_t out_seed)
      : disk_(disk_of(variant)),
        machine_(disk_, {variant.structured, variant.base_allocation, variant.read_only}),
        oracle_({kFuzzDiskBytes, variant.structured, variant.base_allocation, variant.read_only}),
        stream_(std::move(stream)),
        in_sizes_(in_seed),
        out_sizes_(out_seed),
        room_(mix(in_seed, out_seed)) {
    StreamOracle::number_requests(std::as_writable_bytes(std::span(stream_)));
  }

  std::string run() {
    disk_.clear();
    disk_.engine().maintain();
    for (uint64_t step = 0; step < kStepsMax; ++step) {
      const size_t piece = std::min(stream_.size() - sent_, in_sizes_.next());
      const auto next = std::string_view(stream_).substr(sent_, piece);
      const size_t taken = machine_.receive(next);
      oracle_.sent(as_bytes(next.substr(0, taken)));
      sent_ += taken;
      const Progress progress = machine_.run();
      const bool over = progress == Progress::disconnected || progress == Progress::broken;
      const std::string said = machine_.take(over ? SIZE_MAX : out_sizes_.next());
      std::string wrong = oracle_.received(as_bytes(said));
      if (!wrong.empty()) return wrong;
      if (over) return judge_end(progress);
      if (progress == Progress::needs_input && sent_ == stream_.size()) return judge_idle();
      if (progress == Progress::waits ? room_.one_in(3) : room_.one_in(50)) machine_.make_room();
    }
    return "it does not come to an end";
  }

 private:
  std::string judge_end(Progress progress) {
    if (!oracle_.ended()) return "it ends, and the client has not";
    if (oracle_.said_goodbye() != (progress == Progress::disconnected)) return "it ends wrongly";
    return judge_rest();
  }
  std::string judge_idle() {
    if (oracle_.ended()) return "it waits for more, and there is no more";
    return judge_rest();
  }
  std::string judge_rest() {
    for (std::string said = machine_.take(); !said.empty(); said = machine_.take()) {
      std::string wrong = oracle_.received(as_bytes(said));
      if (!wrong.empty()) return wrong;
    }
    if (oracle_.outstanding() != 0) return "requests stay without an answer";
    static uint64_t inputs = 0;
    if (++inputs % kVerifyEvery == 0) disk_.engine().verify();
    return oracle_.judge_disk(disk_.contents());
  }

  Disk& disk_;
  Machine machine_;
  StreamOracle oracle_;
  std::string stream_;
  size_t sent_ = 0;
  PieceSizes in_sizes_;
  PieceSizes out_sizes_;
  Random room_;
};

}  // namespace

std::string fuzz_transmission(FuzzInput input) {
  const Variant variant(take_byte(input));
  const uint8_t in_seed = take_byte(input);
  const uint8_t out_seed = take_byte(input);
  std::string stream = variant.raw ? std::string(as_text(input)) : request_stream(input);
  return Play(variant, std::move(stream), in_seed, out_seed).run();
}

}  // namespace tuck::test

// What the server does with a request's 28 bytes before it carries it out.
#include <array>
#include <span>

#include "bench/corpus/synthetic_kinds.h"
#include "bench/frame/stopwatch.h"
#include "bench/micro/operation.h"
#include "frontends/nbd/request.h"

namespace tuck::bench::micro {

namespace {

using nbd::Command;
using nbd::kRequestBytes;

constexpr uint32_t kBatch = 4096;
constexpr uint64_t kExportBytes = uint64_t{1} << 30;

void write_request(std::byte* out, Command command, uint64_t cookie, uint64_t offset,
                   uint32_t length) noexcept {
  nbd::store32(out, nbd::kRequestMagic);
  nbd::store16(out + 4, 0);
  nbd::store16(out + 6, static_cast<uint16_t>(command));
  nbd::store64(out + 8, cookie);
  nbd::store64(out + 16, offset);
  nbd::store32(out + 24, length);
}

// Legal requests, of commands and at places that no branch predictor can know.
class Decode : public Work {
 public:
  explicit Decode(uint64_t requests) : bytes_(requests * kRequestBytes) {
    static constexpr std::array kCommands{Command::read, Command::write, Command::trim,
                                          Command::read};
    corpus::Random random(1);
    for (uint64_t i = 0; i < requests; ++i) {
      const auto length = static_cast<uint32_t>(kPageSize << random.below(5));
      const uint64_t offset = random.below((kExportBytes - length) / kPageSize) * kPageSize;
      write_request(bytes_.data() + i * kRequestBytes, kCommands[random.below(kCommands.size())], i,
                    offset, length);
    }
    negotiated_.size_bytes = kExportBytes;
    negotiated_.structured_replies = true;
  }

  void prepare() override { first_ = (first_ + kBatch) % (bytes_.size() / kRequestBytes); }
  void run() override {
    uint32_t legal = 0;
    for (uint64_t i = first_; i < first_ + kBatch; ++i) {
      const auto request =
          nbd::parse_request(std::span(bytes_).subspan(i * kRequestBytes).first<kRequestBytes>());
      if (!request) continue;
      legal += nbd::validate(*request, negotiated_) == nbd::WireError::none ? 1u : 0u;
      keep(*request);
    }
    TUCK_CHECK(legal == kBatch);
  }

 private:
  std::vector<std::byte> bytes_;
  nbd::Negotiated negotiated_;
  uint64_t first_ = 0;
};

std::unique_ptr<Work> make(uint64_t requests) {
  return std::make_unique<Decode>(requests);
}

}  // namespace

std::vector<Operation> request_operations() {
  return {{"nbd/request", "legal requests at random", kBatch, true, make}};
}

}  // namespace tuck::bench::micro

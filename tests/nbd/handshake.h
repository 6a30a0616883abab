// What a client says in a handshake, put together byte by byte, and what it hears, taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/nbd/negotiation.h"

namespace tuck::test {

// Big-endian integers as they travel.
std::string be16(uint64_t value);
std::string be32(uint64_t value);
std::string be64(uint64_t value);

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// --- The client's side -----------------------------------------------------------------------

inline constexpr uint32_t kBothFlags = nbd::kClientFixedNewstyle | nbd::kClientNoZeroes;

std::string client_flags(uint32_t flags = kBothFlags);
// claimed: the length in the header where it is not the data's own.
std::string option(uint32_t code, std::string_view data = {}, std::optional<uint32_t> claimed = {});
inline std::string option(nbd::Option code, std::string_view data = {},
                          std::optional<uint32_t> claimed = {}) {
  return option(static_cast<uint32_t>(code), data, claimed);
}
std::string length_and_text(std::string_view text);
// The data of INFO and GO, and of LIST_ and SET_META_CONTEXT.
std::string info_data(std::string_view name, const std::vector<uint16_t>& asked = {});
std::string meta_data(std::string_view name, const std::vector<std::string>& queries);

// --- The server's side -----------------------------------------------------------------------

struct OptionAnswer {
  nbd::Option option{};
  nbd::OptionReply type{};
  std::string payload;
};

// Nothing where the text is not a sequence of whole, well-formed option replies.
std::optional<std::vector<OptionAnswer>> parse_answers(std::string_view text);

struct Outcome {
  nbd::Negotiation::State state{};
  std::string out;
  size_t consumed = 0;
  std::string reason;
  bool in_order = false;
  nbd::Negotiated negotiated;  // only in State::transmission

  // "ACK INFO UNKNOWN": the types of all answers in order; "?" where out is malformed.
  std::string types() const;
  std::vector<OptionAnswer> answers() const;
  bool closed() const { return state == nbd::Negotiation::State::closed; }
  bool running() const { return state == nbd::Negotiation::State::running; }
  bool in_transmission() const { return state == nbd::Negotiation::State::transmission; }
};

// Feeds a negotiation in pieces through an output buffer that is emptied after every call.
class Peer {
 public:
  Peer(std::span<const nbd::Export> exports, nbd::NegotiationLimits limits = {},
       size_t out_bytes = nbd::Negotiation::kAnswerBytesMax);
  // Goes on until the piece is eaten and all is said; returns the bytes eaten.
  size_t feed(std::string_view piece);
  // consume() was caught in a broken promise: nothing eaten, nothing said, and yet room wanted.
  bool stuck() const { return stuck_; }
  Outcome outcome() const;

 private:
  nbd::Negotiation negotiation_;
  std::vector<std::byte> memory_;
  std::string out_;
  size_t consumed_ = 0;
  bool stuck_ = false;
};

// All at once.
Outcome negotiate(std::span<const nbd::Export> exports, std::string_view input,
                  nbd::NegotiationLimits limits = {});

}  // namespace tuck::test

#include "tests/nbd/handshake.h"

namespace tuck::test {

namespace {

std::string big_endian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(static_cast<unsigned char>(value >> shift & 0xff));
  }
  return text;
}

uint64_t number(std::string_view text, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i)
    value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

const char* type_name(nbd::OptionReply type) {
  switch (type) {
    case nbd::OptionReply::ack:
      return "ACK";
    case nbd::OptionReply::server:
      return "SERVER";
    case nbd::OptionReply::info:
      return "INFO";
    case nbd::OptionReply::meta_context:
      return "META";
    case nbd::OptionReply::error_unsupported:
      return "UNSUP";
    case nbd::OptionReply::error_policy:
      return "POLICY";
    case nbd::OptionReply::error_invalid:
      return "INVALID";
    case nbd::OptionReply::error_unknown:
      return "UNKNOWN";
    case nbd::OptionReply::error_too_big:
      return "TOO_BIG";
    default:
      return "?";
  }
}

}  // namespace

std::string be16(uint64_t value) {
  return big_endian(value, 2);
}
std::string be32(uint64_t value) {
  return big_endian(value, 4);
}
std::string be64(uint64_t value) {
  return big_endian(value, 8);
}

std::string client_flags(uint32_t flags) {
  return be32(flags);
}

std::string option(uint32_t code, std::string_view data, std::optional<uint32_t> claimed) {
  return "IHAVEOPT" + be32(code) + be32(claimed ? *claimed : data.size()) + std::string(data);
}

std::string length_and_text(std::string_view text) {
  return be32(text.size()) + std::string(text);
}

std::string info_data(std::string_view name, const std::vector<uint16_t>& asked) {
  std::string data = length_and_text(name) + be16(asked.size());
  for (const uint16_t type : asked)
    data += be16(type);
  return data;
}

std::string meta_data(std::string_view name, const std::vector<std::string>& queries) {
  std::string data = length_and_text(name) + be32(queries.size());
  for (const std::string& query : queries)
    data += length_and_text(query);
  return data;
}

std::optional<std::vector<OptionAnswer>> parse_answers(std::string_view text) {
  std::vector<OptionAnswer> answers;
  while (!text.empty()) {
    if (text.size() < 20 || number(text, 0, 8) != 0x0003e889045565a9) return std::nullopt;
    OptionAnswer answer;
    answer.option = nbd::Option{static_cast<uint32_t>(number(text, 8, 4))};
    answer.type = nbd::OptionReply{static_cast<uint32_t>(number(text, 12, 4))};
    const uint64_t length = number(text, 16, 4);
    text.remove_prefix(20);
    if (length > text.size()) return std::nullopt;
    answer.payload = text.substr(0, length);
    text.remove_prefix(length);
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::string Outcome::types() const {
  const auto parsed = parse_answers(out);
  if (!parsed) return "?";
  std::string text;
  for (const OptionAnswer& answer : *parsed) {
    if (!text.empty()) text += ' ';
    text += type_name(answer.type);
  }
  return text;
}

std::vector<OptionAnswer> Outcome::answers() const {
  return parse_answers(out).value_or(std::vector<OptionAnswer>{});
}

Peer::Peer(std::span<const nbd::Export> exports, nbd::NegotiationLimits limits, size_t out_bytes)
    : negotiation_(exports, limits), memory_(out_bytes) {}

size_t Peer::feed(std::string_view piece) {
  const size_t before = consumed_;
  bool more = true;
  while (more && !stuck_) {
    nbd::OutputBuffer buffer(memory_);
    const size_t eaten = negotiation_.consume(as_bytes(piece), buffer);
    out_.append(reinterpret_cast<const char*>(buffer.data), buffer.size);
    piece.remove_prefix(eaten);
    consumed_ += eaten;
    more = negotiation_.state() == nbd::Negotiation::State::running && negotiation_.needs_room();
    stuck_ = more && buffer.size == 0;
  }
  return consumed_ - before;
}

Outcome Peer::outcome() const {
  Outcome outcome;
  outcome.state = negotiation_.state();
  outcome.out = out_;
  outcome.consumed = consumed_;
  outcome.reason = negotiation_.close_reason();
  outcome.in_order = negotiation_.closed_in_order();
  outcome.negotiated = negotiation_.negotiated();
  return outcome;
}

Outcome negotiate(std::span<const nbd::Export> exports, std::string_view input,
                  nbd::NegotiationLimits limits) {
  Peer peer(exports, limits, 64u << 10);
  peer.feed(input);
  return peer.outcome();
}

}  // namespace tuck::test

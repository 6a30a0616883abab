// What each option is answered. step() has made sure of kAnswerBytesMax of room.
#include <string_view>

#include "frontends/nbd/negotiation.h"
#include "frontends/nbd/option_data.h"

namespace tuck::nbd {

namespace {

// Messages are constant: a client's own bytes are never sent back in one.
constexpr std::string_view kNoDataAllowed = "this option has no data";
constexpr std::string_view kMalformed = "the option's data is malformed";
constexpr std::string_view kUnknownExport = "there is no export of this name";
constexpr std::string_view kTooBig = "the option has more data than this server takes";
constexpr std::string_view kNeedsStructured = "negotiate structured replies first";
constexpr std::string_view kNoTls = "this server has no TLS";
constexpr std::string_view kFull = "the server has as many clients as it has buffers for";
constexpr std::string_view kUnsupported = "this server does not know the option";

void put_header(OutputBuffer& out, Option option, OptionReply type, size_t bytes) noexcept {
  out.put64(kOptionReplyMagic);
  out.put32(static_cast<uint32_t>(option));
  out.put32(static_cast<uint32_t>(type));
  out.put32(static_cast<uint32_t>(bytes));
}

// The longest beginning of text that the protocol allows and that does not end inside a character
// of UTF-8.
std::string_view cut(std::string_view text) noexcept {
  if (text.size() <= kStringBytesMax) return text;
  size_t length = kStringBytesMax;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80)
    --length;
  return text.substr(0, length);
}

void put_info_text(OutputBuffer& out, Option option, InfoType type,
                   std::string_view text) noexcept {
  put_header(out, option, OptionReply::info, 2 + text.size());
  out.put16(static_cast<uint16_t>(type));
  out.put_text(text);
}

}  // namespace

void Negotiation::acknowledge(OutputBuffer& out) noexcept {
  put_header(out, option_, OptionReply::ack, 0);
}

void Negotiation::refuse(OutputBuffer& out, OptionReply error, std::string_view message) noexcept {
  put_header(out, option_, error, message.size());
  out.put_text(message);
}

// Options without data, or whose data was skipped.
void Negotiation::answer_without_data(OutputBuffer& out) noexcept {
  next_option();
  switch (option_) {
    case Option::abort:
      acknowledge(out);
      closed_in_order_ = true;
      return close("the client ended the negotiation");
    case Option::list:
      if (option_bytes_ > 0) return refuse(out, OptionReply::error_invalid, kNoDataAllowed);
      list_next_ = 0;
      phase_ = Phase::answer_list;
      return;
    case Option::structured_reply:
      if (option_bytes_ > 0) return refuse(out, OptionReply::error_invalid, kNoDataAllowed);
      structured_replies_ = true;
      return acknowledge(out);
    case Option::set_meta_context:
      meta_ = {};
      return refuse(out, OptionReply::error_too_big, kTooBig);
    case Option::list_meta_context:
    case Option::info:
    case Option::go:
      return refuse(out, OptionReply::error_too_big, kTooBig);
    case Option::start_tls:
      if (option_bytes_ > 0) return refuse(out, OptionReply::error_invalid, kNoDataAllowed);
      return refuse(out, OptionReply::error_unsupported, kNoTls);
    default:
      return refuse(out, OptionReply::error_unsupported, kUnsupported);
  }
}

// Options whose data is in buffer_.
void Negotiation::answer_data(OutputBuffer& out) noexcept {
  const std::span<const std::byte> data(buffer_.data(), option_bytes_);
  next_option();
  switch (option_) {
    case Option::export_name:
      return answer_export_name(as_text(data), out);
    case Option::info:
    case Option::go:
      return answer_info_or_go(data, out);
    default:
      return answer_meta_context(data, out);
  }
}

void Negotiation::answer_export_name(std::string_view name, OutputBuffer& out) noexcept {
  const Export* chosen = find(name);
  if (chosen == nullptr) return close("an export name that is not served");
  if (!admit()) return close("there are no buffers for one more client");
  enter_transmission(*chosen, name.empty());
  out.put64(negotiated_.size_bytes);
  out.put16(negotiated_.transmission_flags);
  if (!no_zeroes_) out.put_zeroes(kExportNameZeroes);
}

void Negotiation::answer_info_or_go(std::span<const std::byte> data, OutputBuffer& out) noexcept {
  const auto request = parse_info_request(data);
  if (!request) return refuse(out, OptionReply::error_invalid, kMalformed);
  const Export* chosen = find(request->name);
  if (chosen == nullptr) return refuse(out, OptionReply::error_unknown, kUnknownExport);
  if (option_ == Option::go && !admit()) return refuse(out, OptionReply::error_policy, kFull);

  put_header(out, option_, OptionReply::info, 12);
  out.put16(static_cast<uint16_t>(InfoType::export_));
  out.put64(chosen->area->size_bytes());
  out.put16(transmission_flags(*chosen));
  if (request->asks(InfoType::name)) {
    put_info_text(out, option_, InfoType::name, cut(chosen->name));
  }
  if (request->asks(InfoType::description) && !chosen->description.empty()) {
    put_info_text(out, option_, InfoType::description, cut(chosen->description));
  }
  if (request->asks(InfoType::block_size)) {
    put_header(out, option_, OptionReply::info, 14);
    out.put16(static_cast<uint16_t>(InfoType::block_size));
    out.put32(kBlockBytesMin);
    out.put32(kBlockBytesPreferred);
    out.put32(kPayloadBytesMax);
  }
  acknowledge(out);
  if (option_ == Option::go) enter_transmission(*chosen, request->name.empty());
}

void Negotiation::answer_meta_context(std::span<const std::byte> data, OutputBuffer& out) noexcept {
  const bool set = option_ == Option::set_meta_context;
  // SET replaces what was chosen before, also when it fails.
  if (set) meta_ = {};
  if (!structured_replies_) return refuse(out, OptionReply::error_invalid, kNeedsStructured);
  const auto request = parse_meta_request(data);
  if (!request) return refuse(out, OptionReply::error_invalid, kMalformed);
  const Export* chosen = find(request->name);
  if (chosen == nullptr) return refuse(out, OptionReply::error_unknown, kUnknownExport);

  const bool listed = request->queries == 0 || request->base_wildcard || request->base_allocation;
  if (set ? request->base_allocation : listed) {
    // Ids in a LIST mean nothing; the protocol wants 0 there.
    put_header(out, option_, OptionReply::meta_context, 4 + kBaseAllocationName.size());
    out.put32(set ? kBaseAllocationId : 0);
    out.put_text(kBaseAllocationName);
    if (set) meta_ = {chosen, request->name.empty()};
  }
  acknowledge(out);
}

// One export's line of a LIST, or its end.
void Negotiation::answer_list(OutputBuffer& out) noexcept {
  static_assert(kOptionReplyHeaderBytes + 4 + 2 * kStringBytesMax <= kAnswerBytesMax);
  if (list_next_ == exports_.size()) {
    next_option();
    return acknowledge(out);
  }
  const Export& listed = exports_[list_next_++];
  const std::string_view name = cut(listed.name);
  const std::string_view description = cut(listed.description);
  put_header(out, option_, OptionReply::server, 4 + name.size() + description.size());
  out.put32(static_cast<uint32_t>(name.size()));
  out.put_text(name);
  out.put_text(description);
}

}  // namespace tuck::nbd

#include "frontends/nbd/negotiation.h"

#include <algorithm>
#include <cstring>

#include "base/base.h"

namespace tuck::nbd {

namespace {

// Whether the answer depends on the option's data; that of other options is skipped unseen.
constexpr bool has_data(Option option) noexcept {
  switch (option) {
    case Option::export_name:
    case Option::info:
    case Option::go:
    case Option::list_meta_context:
    case Option::set_meta_context:
      return true;
    default:
      return false;
  }
}

}  // namespace

Negotiation::Negotiation(std::span<const Export> exports, NegotiationLimits limits,
                         Admission* admission) noexcept
    : exports_(exports), limits_(limits), admission_(admission) {
  TUCK_CHECK(!exports_.empty());
  bytes_seen_ = kClientFlagsBytes;
}

void Negotiation::greet(OutputBuffer& out) noexcept {
  out.put64(kGreetingMagic);
  out.put64(kOptionMagic);
  out.put16(kHandshakeFixedNewstyle | kHandshakeNoZeroes);
}

size_t Negotiation::consume(std::span<const std::byte> in, OutputBuffer& out) noexcept {
  TUCK_CHECK(out.capacity >= kAnswerBytesMax);
  needs_room_ = false;
  std::span<const std::byte> left = in;
  while (state_ == State::running && step(left, out)) {
  }
  return in.size() - left.size();
}

// Moves on by one phase; false where that takes more input or more room.
bool Negotiation::step(std::span<const std::byte>& in, OutputBuffer& out) noexcept {
  switch (phase_) {
    case Phase::client_flags:
      if (!gather(in, kClientFlagsBytes)) return false;
      take_client_flags();
      return true;
    case Phase::option_header:
      if (!gather(in, kOptionHeaderBytes)) return false;
      take_option_header();
      return true;
    case Phase::option_data:
      if (!gather(in, option_bytes_) || !has_room(out)) return false;
      answer_data(out);
      return true;
    case Phase::drain: {
      const size_t skipped = std::min<size_t>(drain_left_, in.size());
      in = in.subspan(skipped);
      drain_left_ -= static_cast<uint32_t>(skipped);
      if (drain_left_ > 0 || !has_room(out)) return false;
      answer_without_data(out);
      return true;
    }
    case Phase::answer_list:
      if (!has_room(out)) return false;
      answer_list(out);
      return true;
  }
  return false;
}

bool Negotiation::gather(std::span<const std::byte>& in, size_t wanted) noexcept {
  const size_t taken = std::min(wanted - gathered_, in.size());
  if (taken > 0) std::memcpy(buffer_.data() + gathered_, in.data(), taken);
  gathered_ += taken;
  in = in.subspan(taken);
  return gathered_ == wanted;
}

bool Negotiation::has_room(const OutputBuffer& out) noexcept {
  needs_room_ = out.room() < kAnswerBytesMax;
  return !needs_room_;
}

void Negotiation::take_client_flags() noexcept {
  const uint32_t flags = load32(buffer_.data());
  if ((flags & ~(kClientFixedNewstyle | kClientNoZeroes)) != 0) {
    return close("client flags that were not offered");
  }
  fixed_newstyle_ = (flags & kClientFixedNewstyle) != 0;
  no_zeroes_ = (flags & kClientNoZeroes) != 0;
  next_option();
}

void Negotiation::take_option_header() noexcept {
  if (load64(buffer_.data()) != kOptionMagic) return close("an option without its magic number");
  option_ = Option{load32(buffer_.data() + 8)};
  option_bytes_ = load32(buffer_.data() + 12);
  gathered_ = 0;

  if (++options_seen_ > limits_.options_max) {
    return close_over_limits("too many options");
  }
  if (option_bytes_ > limits_.option_bytes_max) {
    return close_over_limits("an option with too much data");
  }
  bytes_seen_ += kOptionHeaderBytes + option_bytes_;
  if (bytes_seen_ > limits_.bytes_max) {
    return close_over_limits("too much data before transmission");
  }
  if (!fixed_newstyle_ && option_ != Option::export_name && option_ != Option::abort) {
    return close("an option that needs fixed newstyle, which the client did not choose");
  }
  // There is no error reply to EXPORT_NAME; no export has such a name.
  if (option_ == Option::export_name && option_bytes_ > kStringBytesMax) {
    return close("an export name that is too long");
  }
  if (has_data(option_) && option_bytes_ <= kOptionBytesGathered) {
    phase_ = Phase::option_data;
  } else {
    phase_ = Phase::drain;
    drain_left_ = option_bytes_;
  }
}

void Negotiation::next_option() noexcept {
  phase_ = Phase::option_header;
  gathered_ = 0;
}

void Negotiation::close(const char* reason) noexcept {
  state_ = State::closed;
  close_reason_ = reason;
}

void Negotiation::close_over_limits(const char* reason) noexcept {
  over_limits_ = true;
  close(reason);
}

const Export* Negotiation::find(std::string_view name) const noexcept {
  for (const Export& candidate : exports_) {
    if (candidate.name == name) return &candidate;
  }
  return name.empty() ? &exports_.front() : nullptr;
}

uint16_t Negotiation::transmission_flags(const Export& chosen) const noexcept {
  // Everything is in the one pool that all connections share as soon as it is answered, so FLUSH
  // and FUA hold across connections.
  unsigned flags =
      kFlagHasFlags | kFlagSendFlush | kFlagSendFua | kFlagCanMultiConn | kFlagSendCache;
  if (structured_replies_) flags |= kFlagSendDf;
  if (chosen.read_only) {
    flags |= kFlagReadOnly;
  } else {
    flags |= kFlagSendTrim | kFlagSendWriteZeroes | kFlagSendFastZero;
  }
  return static_cast<uint16_t>(flags);
}

void Negotiation::enter_transmission(const Export& chosen, bool by_default_name) noexcept {
  negotiated_.export_ = &chosen;
  negotiated_.size_bytes = chosen.area->size_bytes();
  negotiated_.structured_replies = structured_replies_;
  negotiated_.base_allocation =
      meta_.export_ == &chosen && meta_.by_default_name == by_default_name;
  negotiated_.transmission_flags = transmission_flags(chosen);
  state_ = State::transmission;
}

}  // namespace tuck::nbd

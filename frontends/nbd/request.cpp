#include "frontends/nbd/request.h"

namespace tuck::nbd {

namespace {

constexpr bool is_known(Command command) noexcept {
  return command <= Command::block_status;
}

// FUA is right on every command once SEND_FUA is advertised; some clients set it on READ.
uint16_t allowed_flags(Command command, bool structured) noexcept {
  unsigned allowed = kCommandFua;
  if (command == Command::read && structured) allowed |= kCommandDf;
  if (command == Command::write_zeroes) allowed |= kCommandNoHole | kCommandFastZero;
  if (command == Command::block_status) allowed |= kCommandReqOne;
  return static_cast<uint16_t>(allowed);
}

// Only writes that run past the end are told that there is no space.
constexpr WireError past_end(Command command) noexcept {
  return command == Command::write || command == Command::write_zeroes ? WireError::no_space
                                                                       : WireError::invalid;
}

}  // namespace

std::optional<Request> parse_request(std::span<const std::byte, kRequestBytes> bytes) noexcept {
  if (load32(bytes.data()) != kRequestMagic) return std::nullopt;
  Request request;
  request.flags = load16(bytes.data() + 4);
  request.command = Command{load16(bytes.data() + 6)};
  request.cookie = load64(bytes.data() + 8);
  request.offset = load64(bytes.data() + 16);
  request.length = load32(bytes.data() + 24);
  return request;
}

WireError validate(const Request& request, const Negotiated& negotiated) noexcept {
  const Command command = request.command;
  if (!is_known(command)) return WireError::invalid;
  if (command == Command::disconnect) return WireError::none;
  if ((request.flags & ~allowed_flags(command, negotiated.structured_replies)) != 0) {
    return WireError::invalid;
  }
  if (command == Command::flush) {
    return request.offset == 0 && request.length == 0 ? WireError::none : WireError::invalid;
  }
  if (modifies(command) && (negotiated.transmission_flags & kFlagReadOnly) != 0) {
    return WireError::permission;
  }
  const bool has_payload = command == Command::read || command == Command::write;
  if (has_payload && request.length > kPayloadBytesMax) return WireError::invalid;
  if (command == Command::block_status && (!negotiated.base_allocation || request.length == 0)) {
    return WireError::invalid;
  }
  // Compared by subtraction: offset + length may wrap at 2^64.
  if (request.offset > negotiated.size_bytes ||
      request.length > negotiated.size_bytes - request.offset) {
    return past_end(command);
  }
  return WireError::none;
}

}  // namespace tuck::nbd

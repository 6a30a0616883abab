// Requests: their 28 bytes, and the one place that decides whether a request may be carried out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "frontends/nbd/negotiation.h"
#include "frontends/nbd/protocol.h"

namespace tuck::nbd {

struct Request {
  uint16_t flags = 0;
  Command command{};
  uint64_t cookie = 0;
  uint64_t offset = 0;
  uint32_t length = 0;
};

// Nothing where the magic is wrong: the stream is out of step, and the connection is to be closed.
std::optional<Request> parse_request(std::span<const std::byte, kRequestBytes> bytes) noexcept;

constexpr bool modifies(Command command) noexcept {
  return command == Command::write || command == Command::trim || command == Command::write_zeroes;
}
// A WRITE's payload follows its header, also when the request is refused.
inline bool carries_payload(const Request& request) noexcept {
  return request.command == Command::write;
}
// More than the server takes in, and more than it is willing to skip: close the connection.
inline bool payload_too_long(const Request& request) noexcept {
  return carries_payload(request) && request.length > kPayloadBytesMax;
}

// none: command and flags are known and allowed; offset + length lies within the export; a READ or
// WRITE has at most kPayloadBytesMax; nothing writes to a read-only export; BLOCK_STATUS has its
// context and a length. Everything behind relies on that. A length of 0 passes for READ, WRITE,
// TRIM, WRITE_ZEROES and CACHE: nothing to do. DISC is always right, and gets no reply.
WireError validate(const Request& request, const Negotiated& negotiated) noexcept;

}  // namespace tuck::nbd

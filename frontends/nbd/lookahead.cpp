#include "frontends/nbd/lookahead.h"

namespace tuck::nbd {

namespace {

uint64_t bytes_in_stream(const Request& request) noexcept {
  return kRequestBytes + (carries_payload(request) ? uint64_t{request.length} : 0);
}

}  // namespace

void Lookahead::keep_clear_of(const Request& request, uint64_t place) noexcept {
  if (request.length == 0) return;
  ranges_.push({place, request.offset, request.offset + request.length});
}

bool Lookahead::keeps_clear(const Request& read) const noexcept {
  const uint64_t end = read.offset + read.length;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const Range& range = ranges_.at(i);
    if (read.offset < range.end && range.begin < end) return false;
  }
  return true;
}

void Lookahead::turn_of(const Request& request, uint64_t place) noexcept {
  while (!ranges_.empty() && ranges_.front().place < place)
    ranges_.pop();
  if (next_ > place) return;  // looked at before
  // Every range is of a request in front of this one: there is room.
  keep_clear_of(request, place);
  next_ = place + bytes_in_stream(request);
}

std::optional<Lookahead::Found> Lookahead::find(std::span<const std::byte> unread, uint64_t place,
                                                const Negotiated& negotiated) noexcept {
  while (headers_left_ != 0 && !at_the_end_) {
    // A payload that has not come in full may end behind what is there.
    const uint64_t at = next_ - place;
    if (at > unread.size() || unread.size() - at < kRequestBytes) break;
    --headers_left_;
    const auto request =
        parse_request(unread.subspan(static_cast<size_t>(at)).first<kRequestBytes>());
    if (!request || payload_too_long(*request) || request->command == Command::disconnect) {
      at_the_end_ = true;
      break;
    }
    // What is refused modifies nothing, and is told so in its turn.
    const bool right = validate(*request, negotiated) == WireError::none;
    if (right && modifies(request->command)) {
      if (ranges_.full()) break;
      keep_clear_of(*request, next_);
    } else if (right && request->command == Command::read &&
               request->length <= kReadAheadBytesMax && keeps_clear(*request)) {
      if (served_.full()) break;
      served_.push(next_);
      next_ += kRequestBytes;
      return Found{*request, next_};
    }
    next_ += bytes_in_stream(*request);
  }
  return std::nullopt;
}

}  // namespace tuck::nbd

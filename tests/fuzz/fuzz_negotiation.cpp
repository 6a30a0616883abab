#include <algorithm>
#include <array>

#include "tests/fuzz/controls.h"
#include "tests/nbd/exports.h"
#include "tests/nbd/handshake.h"

namespace tuck::test {

namespace {

const std::vector<nbd::Export>& exports_of(uint8_t variant) {
  static const std::vector<nbd::Export> many = Exports::many(40, 30, "one of many");
  static const std::vector<nbd::Export> long_names =
      Exports::many(3, nbd::kStringBytesMax, std::string(nbd::kStringBytesMax, 'd'));
  switch (variant % 4) {
    case 0:
      return many;
    case 1:
      return long_names;
    default:
      return Exports::pair();
  }
}

nbd::NegotiationLimits limits_of(uint8_t variant) {
  nbd::NegotiationLimits limits;
  if ((variant & 1) != 0) limits.options_max = 3;
  if ((variant & 2) != 0) limits.option_bytes_max = 100;
  if ((variant & 4) != 0) limits.bytes_max = 300;
  return limits;
}

// Replies to options, and at most one answer to EXPORT_NAME, which is the last.
bool well_formed(const Outcome& outcome) {
  const std::string_view out = outcome.out;
  if (parse_answers(out)) return true;
  for (const size_t last : {size_t{10}, 10 + nbd::kExportNameZeroes}) {
    if (outcome.in_transmission() && out.size() >= last &&
        parse_answers(out.substr(0, out.size() - last))) {
      return true;
    }
  }
  return false;
}

std::string differ(const Outcome& one, const Outcome& other) {
  if (one.state != other.state) return "in pieces it ends in another state";
  if (one.out != other.out) return "in pieces it says something else";
  if (one.consumed != other.consumed) return "in pieces it takes another number of bytes";
  if (one.reason != other.reason || one.in_order != other.in_order) {
    return "in pieces it has another reason";
  }
  if (one.in_transmission()) {
    const nbd::Negotiated& a = one.negotiated;
    const nbd::Negotiated& b = other.negotiated;
    if (a.export_ != b.export_ || a.structured_replies != b.structured_replies ||
        a.base_allocation != b.base_allocation || a.transmission_flags != b.transmission_flags) {
      return "in pieces something else was agreed on";
    }
  }
  return {};
}

std::string judge(const Outcome& outcome, const std::vector<nbd::Export>& exports) {
  if (!well_formed(outcome)) return "an answer is malformed";
  if (outcome.closed() != !outcome.reason.empty()) return "closed without a reason, or not closed";
  if (!outcome.in_transmission()) return {};
  const nbd::Negotiated& agreed = outcome.negotiated;
  const bool ours = std::any_of(exports.begin(), exports.end(),
                                [&](const nbd::Export& e) { return &e == agreed.export_; });
  if (!ours) return "agreed on an export that is none";
  if (agreed.base_allocation && !agreed.structured_replies) return "a context without chunks";
  const bool read_only = (agreed.transmission_flags & nbd::kFlagReadOnly) != 0;
  return read_only == agreed.export_->read_only ? "" : "read-only, or not, against the export";
}

}  // namespace

std::string fuzz_negotiation(FuzzInput input) {
  const auto& exports = exports_of(take_byte(input));
  const nbd::NegotiationLimits limits = limits_of(take_byte(input));
  PieceSizes sizes(take_byte(input));
  const std::string_view stream = as_text(input);

  Peer whole(exports, limits, 64u << 10);
  whole.feed(stream);
  Peer pieces(exports, limits);
  for (size_t at = 0; at < stream.size() && pieces.outcome().running();) {
    const size_t piece = std::min(stream.size() - at, sizes.next());
    if (pieces.feed(stream.substr(at, piece)) != piece && pieces.outcome().running()) {
      return "it leaves bytes, and goes on";
    }
    at += piece;
  }
  if (whole.stuck() || pieces.stuck()) return "it wants room that it has";
  const std::string different = differ(whole.outcome(), pieces.outcome());
  return different.empty() ? judge(whole.outcome(), exports) : different;
}

}  // namespace tuck::test

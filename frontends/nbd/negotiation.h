// The handshake, as a machine that eats bytes and writes bytes: no I/O, no allocation, bounded
// memory, and resumable at every byte boundary. What a client sends ends in an answer, or in
// State::closed with a reason; nothing it sends reaches a log.
//
// How to drive it:
//   greet(out); send out;
//   loop: consume(in, out); send out and clear it; then, by state():
//     running        give it what was not consumed and what comes next; when needs_room() is set,
//     call
//                    again right after sending, even without new input
//     transmission   what consume() left of the input is the first request
//     closed         nothing more is consumed: send what out still holds, close, log close_reason()
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "frontends/nbd/nbd.h"
#include "frontends/nbd/output_buffer.h"
#include "frontends/nbd/protocol.h"

namespace tuck::nbd {

// What a client and the server agreed on.
struct Negotiated {
  const Export* export_ = nullptr;
  uint64_t size_bytes = 0;          // the export's, as the client was told
  bool structured_replies = false;  // READ must be answered in chunks
  bool base_allocation = false;     // BLOCK_STATUS is allowed; its context is kBaseAllocationId
  uint16_t transmission_flags = 0;
};

// Asked when a client is about to enter transmission. Refused, GO gets an error and the client may
// ask again; EXPORT_NAME, which has no errors, closes.
class Admission {
 public:
  virtual bool admit() noexcept = 0;

 protected:
  ~Admission() = default;
};

class Negotiation {
 public:
  enum class State : uint8_t { running, transmission, closed };

  // The largest answer that is written in one go: a GO with a name and a description of the
  // greatest length. An output buffer needs this much room at least.
  static constexpr size_t kAnswerBytesMax =
      5 * kOptionReplyHeaderBytes + 12 + 14 + 2 * (2 + kStringBytesMax);

  // The exports (at least one; names of at most kStringBytesMax bytes) outlive this object.
  // So does the admission; nullptr lets everybody in.
  Negotiation(std::span<const Export> exports, NegotiationLimits limits,
              Admission* admission = nullptr) noexcept;

  // What the server sends first: kGreetingBytes.
  static void greet(OutputBuffer& out) noexcept;

  // Takes in what has come and appends the answers to out, whose capacity is kAnswerBytesMax at
  // least. Returns the bytes consumed. Stops where transmission begins, at the byte that closes the
  // connection, and when out has no room for another answer.
  size_t consume(std::span<const std::byte> in, OutputBuffer& out) noexcept;

  State state() const noexcept { return state_; }
  // The last consume() stopped because out was too full, not for want of input.
  bool needs_room() const noexcept { return needs_room_; }
  // Constant text; "" unless closed. closed_in_order() tells a client that said ABORT from one that
  // was thrown out.
  const char* close_reason() const noexcept { return close_reason_; }
  bool closed_in_order() const noexcept { return closed_in_order_; }
  // Closed for saying more than NegotiationLimits.
  bool over_limits() const noexcept { return over_limits_; }
  // Only in State::transmission.
  const Negotiated& negotiated() const noexcept { return negotiated_; }

 private:
  // What the next bytes are.
  enum class Phase : uint8_t { client_flags, option_header, option_data, drain, answer_list };

  // The export that the base:allocation context was chosen for, by the name that was used: the
  // context counts only if GO uses the same name.
  struct MetaChoice {
    const Export* export_ = nullptr;
    bool by_default_name = false;
  };

  // Data that an answer depends on is gathered; options with more are refused. Enough for a name
  // and two queries of the greatest length, or for thousands of information requests.
  static constexpr size_t kOptionBytesGathered = 16u << 10;

  bool step(std::span<const std::byte>& in, OutputBuffer& out) noexcept;
  bool gather(std::span<const std::byte>& in, size_t wanted) noexcept;
  bool has_room(const OutputBuffer& out) noexcept;
  void take_client_flags() noexcept;
  void take_option_header() noexcept;
  void next_option() noexcept;
  void close(const char* reason) noexcept;
  void close_over_limits(const char* reason) noexcept;
  bool admit() noexcept { return admission_ == nullptr || admission_->admit(); }
  const Export* find(std::string_view name) const noexcept;
  uint16_t transmission_flags(const Export& chosen) const noexcept;
  void enter_transmission(const Export& chosen, bool by_default_name) noexcept;

  // negotiation_answers.cpp
  void answer_without_data(OutputBuffer& out) noexcept;
  void answer_data(OutputBuffer& out) noexcept;
  void answer_export_name(std::string_view name, OutputBuffer& out) noexcept;
  void answer_info_or_go(std::span<const std::byte> data, OutputBuffer& out) noexcept;
  void answer_meta_context(std::span<const std::byte> data, OutputBuffer& out) noexcept;
  void answer_list(OutputBuffer& out) noexcept;
  void acknowledge(OutputBuffer& out) noexcept;
  void refuse(OutputBuffer& out, OptionReply error, std::string_view message) noexcept;

  std::span<const Export> exports_;
  NegotiationLimits limits_;
  Admission* const admission_;
  State state_ = State::running;
  Phase phase_ = Phase::client_flags;
  bool needs_room_ = false;
  bool closed_in_order_ = false;
  bool over_limits_ = false;
  const char* close_reason_ = "";

  bool fixed_newstyle_ = false;
  bool no_zeroes_ = false;
  bool structured_replies_ = false;
  MetaChoice meta_;
  Negotiated negotiated_;

  uint64_t bytes_seen_ = 0;
  uint32_t options_seen_ = 0;
  Option option_{};
  uint32_t option_bytes_ = 0;  // the length of its data
  uint32_t drain_left_ = 0;    // data still to be skipped before the answer
  size_t list_next_ = 0;       // the export that LIST comes to next
  size_t gathered_ = 0;
  std::array<std::byte, kOptionBytesGathered> buffer_;
};

}  // namespace tuck::nbd

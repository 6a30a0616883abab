// The transmission phase of one connection, as a machine between two buffers: requests come in,
// replies go out, the swap area is worked on in between. No I/O and no allocation; it stops
// wherever input, room or work is lacking, and goes on from there.
//
// Requests are worked one at a time, in the order in which they came, but for READs that overtake
// (lookahead.h). How a request goes:
//   header → (write | drain | read_* | trim | write_zeroes | block_status) → reply → header
// A request that modifies is set aside for a READ that overtakes it: before it begins, when it has
// to wait for room, and between two turns.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "frontends/nbd/buffers.h"
#include "frontends/nbd/counters.h"
#include "frontends/nbd/lookahead.h"
#include "frontends/nbd/negotiation.h"
#include "frontends/nbd/request.h"

namespace tuck::nbd {

// Why run() came back.
enum class Progress : uint8_t {
  needs_input,   // what has come is used up
  needs_room,    // something must be sent first
  yields,        // its share of work is done, and there is more
  waits,         // for the ticket: run() again after notified(), or when more has come
  disconnected,  // the client said goodbye: send what there is, and close
  broken,        // the same, and log reason()
};

// How much one call of run() may decode or compress before other connections get their turn.
inline constexpr uint32_t kWorkPagesMax = 64;
// And how many requests it may begin: those that touch no page cost well under a microsecond each.
inline constexpr uint32_t kRequestsATurnMax = 128;
// Payload is stored in pieces that end at these borders of the export, so that no unit (64 KiB at
// most) is cut in two because its bytes came in two receives. A long READ goes on when this much
// can be put in the send buffers.
inline constexpr uint64_t kPieceBytes = 64u << 10;

constexpr uint64_t pages_of(uint64_t bytes) noexcept {
  return (bytes + kPageSize - 1) >> kPageShift;
}

class Transmission {
 public:
  // The ticket outlives this object. Counters of the worker that calls run().
  Transmission(const Negotiated& negotiated, engine::Ticket& ticket,
               WorkerCounters& counters) noexcept;

  Progress run(ReceiveBuffer& in, SendBuffers& out) noexcept;
  // The ticket that run() waits for has been notified, and its callback has been entered.
  void notified() noexcept { ticket_is_out_ = read_waits_ = false; }

  // A call waits for the ticket, whatever run() came back for.
  bool ticket_is_out() const noexcept { return ticket_is_out_; }

  // Constant text, after Progress::broken.
  const char* reason() const noexcept { return reason_; }
  // Some of a request has been read, and not all of it.
  bool inside_request() const noexcept { return stage_ != Stage::header || set_aside_; }

 private:
  enum class Stage : uint8_t {
    header,       // between requests
    write,        // payload comes in and is stored as it comes
    drain,        // payload of a WRITE that has failed
    read_whole,   // a reply that is put together before it is committed
    read_chunks,  // structured: a chunk for each hole and each piece of data
    read_stream,  // one reply too long for the buffer: header first, then the data in pieces
    trim,
    write_zeroes,
    block_status,
    reply,  // nothing left to do but to say so
  };
  // A request that has been begun and modifies: what is to be kept of it while READs overtake it.
  struct Suspended {
    Stage stage = Stage::header;
    Request request;
    uint64_t done = 0;
    uint64_t arrived_ns = 0;
    bool has_waited = false;
  };
  // Nothing: go on with the next step.
  using Step = std::optional<Progress>;

  // 16 KiB a connection; a client that has more extents than that asks again.
  static constexpr size_t kExtentsMax = 1024;

  Step step(ReceiveBuffer& in, SendBuffers& out) noexcept;
  Step take_header(ReceiveBuffer& in) noexcept;
  Step overtake_or_resume(ReceiveBuffer& in) noexcept;
  bool overtake(const ReceiveBuffer& in) noexcept;
  void begin(const Request& request, WireError error, uint64_t arrived_ns) noexcept;
  void set_aside() noexcept;
  void resume() noexcept;
  void consume(ReceiveBuffer& in, uint64_t bytes) noexcept;
  Stage first_stage() const noexcept;
  Step write(ReceiveBuffer& in) noexcept;
  Step drain(ReceiveBuffer& in) noexcept;
  Step read_whole(SendBuffers& out) noexcept;
  Step read_stream(SendBuffers& out) noexcept;
  Step read_chunks(SendBuffers& out) noexcept;
  Step data_chunk(SendBuffers& out, uint64_t data_bytes) noexcept;
  Step hole_chunk(SendBuffers& out, uint32_t hole_bytes) noexcept;
  Step error_chunk(SendBuffers& out) noexcept;
  Step trim() noexcept;
  Step write_zeroes() noexcept;
  Step block_status(SendBuffers& out) noexcept;
  Step look_for_extents() noexcept;
  Step reply(SendBuffers& out) noexcept;

  Step broken(const char* reason) noexcept;
  // Only one call may wait for the ticket.
  engine::Ticket* ticket() const noexcept { return ticket_is_out_ ? nullptr : &ticket_; }
  Step fail_to(Stage next, Errc code) noexcept;
  // Takes what a call has done into account. True: it did all it was asked for.
  bool took(const vm::ByteResult& result) noexcept;
  void finish() noexcept;
  // A request has arrived when its payload is there to the end.
  void note_arrival(const ReceiveBuffer& in) noexcept;

  uint64_t position() const noexcept { return request_.offset + done_; }
  uint64_t left() const noexcept { return request_.length - done_; }
  size_t read_header_bytes() const noexcept;
  void put_read_header(std::span<std::byte> out) const noexcept;
  void spend(uint64_t pages) noexcept;
  // Worth beginning: all of it fits what is left of this turn, or no turn is long enough for it.
  bool can_afford(uint64_t bytes) const noexcept;
  uint64_t affordable(uint64_t bytes) const noexcept;

  const Negotiated negotiated_;
  vm::SwapArea& area_;
  engine::Ticket& ticket_;
  WorkerCounters& counters_;
  const char* reason_ = "";

  Stage stage_ = Stage::header;
  uint32_t work_left_ = 0;      // pages, in this call of run()
  uint32_t requests_left_ = 0;  // that this call may begin

  uint64_t consumed_ = 0;  // bytes of the client's stream
  Lookahead lookahead_;
  std::optional<Suspended> set_aside_;
  bool ticket_is_out_ = false;  // and has not been notified yet
  bool read_waits_ = false;     // the READ being worked on can go on only after that

  // The request being worked on.
  Request request_;
  uint64_t done_ = 0;        // bytes of its range
  uint64_t arrived_ns_ = 0;  // when the last byte of it came
  WireError error_ = WireError::none;
  bool has_waited_ = false;
  bool header_sent_ = false;          // read_stream
  std::span<std::byte> whole_reply_;  // read_whole: reserved, filled up to done_
  size_t extents_found_ = 0;          // block_status
  std::array<vm::ByteExtent, kExtentsMax> extents_;
};

}  // namespace tuck::nbd

#include "frontends/nbd/transmission.h"

#include <algorithm>

#include "frontends/nbd/clock.h"
#include "frontends/nbd/reply.h"

namespace tuck::nbd {

namespace {

// Freeing costs a small part of compressing; this much is one turn's work.
constexpr uint64_t kFreeStepBytes = 4u << 20;
constexpr uint64_t kFreedPagesAWorkPage = 16;
static_assert(kFreeStepBytes / kPageSize / kFreedPagesAWorkPage == kWorkPagesMax);
// Compressing a page takes three to four times as long as decoding one, so fewer are stored in a
// turn: a READ that comes meanwhile overtakes the rest when the turn is over.
constexpr uint64_t kStoredPageWork = 3;
static_assert(kStoredPageWork * (kPieceBytes / kPageSize + 1) <= kWorkPagesMax);
static_assert(kPieceBytes + kRequestBytes < kReceiveBytes / 2);

// The bytes from offset on, at most `bytes`, that end at a multiple of border or at the end.
constexpr uint64_t up_to_border(uint64_t offset, uint64_t bytes, uint64_t border) noexcept {
  return std::min(bytes, border - offset % border);
}

}  // namespace

Transmission::Transmission(const Negotiated& negotiated, engine::Ticket& ticket,
                           WorkerCounters& counters) noexcept
    : negotiated_(negotiated),
      area_(*negotiated.export_->area),
      ticket_(ticket),
      counters_(counters) {}

Progress Transmission::run(ReceiveBuffer& in, SendBuffers& out) noexcept {
  if (read_waits_) return Progress::waits;
  work_left_ = kWorkPagesMax;
  requests_left_ = kRequestsATurnMax;
  lookahead_.allow(kRequestsATurnMax);
  if (stage_ == Stage::write || stage_ == Stage::trim || stage_ == Stage::write_zeroes) set_aside();
  for (;;) {
    if (const Step stop = step(in, out)) return *stop;
  }
}

Transmission::Step Transmission::step(ReceiveBuffer& in, SendBuffers& out) noexcept {
  switch (stage_) {
    case Stage::header:
      return take_header(in);
    case Stage::write:
      return write(in);
    case Stage::drain:
      return drain(in);
    case Stage::read_whole:
      return read_whole(out);
    case Stage::read_chunks:
      return read_chunks(out);
    case Stage::read_stream:
      return read_stream(out);
    case Stage::trim:
      return trim();
    case Stage::write_zeroes:
      return write_zeroes();
    case Stage::block_status:
      return block_status(out);
    case Stage::reply:
      return reply(out);
  }
  return broken("unreachable stage");
}

// --- Beginning and end of a request ------------------------------------------------------------

Transmission::Step Transmission::take_header(ReceiveBuffer& in) noexcept {
  // READs served ahead keep their places until the request that they overtook is done.
  while (!set_aside_ && lookahead_.was_served(consumed_))
    consume(in, kRequestBytes);
  if (set_aside_) return overtake_or_resume(in);
  if (in.size() < kRequestBytes) return Progress::needs_input;
  if (requests_left_ == 0) return Progress::yields;
  const auto request = parse_request(in.bytes().first<kRequestBytes>());
  if (!request) return broken("a request without the request magic");
  if (payload_too_long(*request)) return broken("a write with more payload than is allowed");
  const WireError error = validate(*request, negotiated_);
  if (error == WireError::none && modifies(request->command)) {
    lookahead_.turn_of(*request, consumed_);
    if (overtake(in)) return std::nullopt;
  }
  const uint64_t arrived_ns = in.arrived_ns(kRequestBytes);
  consume(in, kRequestBytes);
  if (request->command == Command::disconnect) return Progress::disconnected;
  begin(*request, error, arrived_ns);
  return std::nullopt;
}

void Transmission::begin(const Request& request, WireError error, uint64_t arrived_ns) noexcept {
  --requests_left_;
  request_ = request;
  arrived_ns_ = arrived_ns;
  done_ = 0;
  has_waited_ = header_sent_ = false;
  whole_reply_ = {};
  extents_found_ = 0;
  error_ = error;
  stage_ = first_stage();
}

void Transmission::consume(ReceiveBuffer& in, uint64_t bytes) noexcept {
  in.consume(static_cast<size_t>(bytes));
  consumed_ += bytes;
}

Transmission::Stage Transmission::first_stage() const noexcept {
  if (error_ != WireError::none) return carries_payload(request_) ? Stage::drain : Stage::reply;
  switch (request_.command) {
    case Command::read:
      // A structured READ of nothing has a chunk without content, which reply() knows.
      if (negotiated_.structured_replies && request_.length == 0) return Stage::reply;
      if (negotiated_.structured_replies && (request_.flags & kCommandDf) == 0)
        return Stage::read_chunks;
      return request_.length <= kWholeReadBytesMax ? Stage::read_whole : Stage::read_stream;
    case Command::write:
      return Stage::write;
    case Command::trim:
      return Stage::trim;
    case Command::write_zeroes:
      return Stage::write_zeroes;
    case Command::block_status:
      return Stage::block_status;
    case Command::flush:  // every write that was answered is in the pool
    case Command::cache:  // everything is in memory already
    case Command::disconnect:
      break;
  }
  return Stage::reply;
}

// True: a READ has been begun.
bool Transmission::overtake(const ReceiveBuffer& in) noexcept {
  const auto found = lookahead_.find(in.bytes(), consumed_, negotiated_);
  if (!found) return false;
  begin(found->request, WireError::none,
        in.arrived_ns(static_cast<size_t>(found->end - consumed_)));
  return true;
}

void Transmission::set_aside() noexcept {
  set_aside_ = Suspended{stage_, request_, done_, arrived_ns_, has_waited_};
  stage_ = Stage::header;
}

void Transmission::resume() noexcept {
  stage_ = set_aside_->stage;
  request_ = set_aside_->request;
  done_ = set_aside_->done;
  arrived_ns_ = set_aside_->arrived_ns;
  has_waited_ = set_aside_->has_waited;
  error_ = WireError::none;
  set_aside_.reset();
}

Transmission::Step Transmission::overtake_or_resume(ReceiveBuffer& in) noexcept {
  if (requests_left_ == 0) return Progress::yields;
  if (overtake(in)) return std::nullopt;
  if (ticket_is_out_) return Progress::waits;
  resume();
  return std::nullopt;
}

Transmission::Step Transmission::reply(SendBuffers& out) noexcept {
  const auto room = out.reserve(kErrorChunkBytes);
  if (room.empty()) return Progress::needs_room;
  const bool chunk = negotiated_.structured_replies && (request_.command == Command::read ||
                                                        request_.command == Command::block_status);
  out.commit(put_status_reply(room, request_.cookie, error_, chunk));
  finish();
  return std::nullopt;
}

void Transmission::finish() noexcept {
  stage_ = Stage::header;
  const auto operation = operation_of(request_.command);
  if (!operation) return;
  OperationCounters& counters = counters_.operations[static_cast<size_t>(*operation)];
  counters.requests.add(1);
  if (error_ == WireError::none) {
    counters.bytes.add(request_.length);
  } else {
    counters.errors.add(1);
  }
  const uint64_t now = now_ns();
  counters.latency.record(now > arrived_ns_ ? now - arrived_ns_ : 0);
}

void Transmission::note_arrival(const ReceiveBuffer& in) noexcept {
  if (in.size() >= left()) arrived_ns_ = in.arrived_ns(static_cast<size_t>(left()));
}

Transmission::Step Transmission::broken(const char* reason) noexcept {
  reason_ = reason;
  return Progress::broken;
}

// --- Common to the requests ------------------------------------------------------------------

void Transmission::spend(uint64_t pages) noexcept {
  work_left_ -= static_cast<uint32_t>(std::min<uint64_t>(pages, work_left_));
}

bool Transmission::can_afford(uint64_t bytes) const noexcept {
  return pages_of(bytes) <= work_left_ || work_left_ == kWorkPagesMax;
}

uint64_t Transmission::affordable(uint64_t bytes) const noexcept {
  // The last page is not cut in two.
  const uint64_t most = uint64_t{work_left_} * kPageSize - position() % kPageSize;
  return std::min(bytes, most);
}

// pending: the same call goes on from done_ when the ticket says so.
Transmission::Step Transmission::fail_to(Stage next, Errc code) noexcept {
  if (code == Errc::pending) {
    if (!has_waited_) counters_.requests_pending.add(1);
    has_waited_ = ticket_is_out_ = true;
    if (!modifies(request_.command)) {
      read_waits_ = true;
      return Progress::waits;
    }
    set_aside();
    return std::nullopt;
  }
  error_ = wire_error_of(code);
  stage_ = next;
  return std::nullopt;
}

bool Transmission::took(const vm::ByteResult& result) noexcept {
  done_ += result.bytes_done;
  return result.code == Errc::ok;
}

// --- WRITE -----------------------------------------------------------------------------------

Transmission::Step Transmission::write(ReceiveBuffer& in) noexcept {
  if (left() == 0) {
    stage_ = Stage::reply;
    return std::nullopt;
  }
  note_arrival(in);
  uint64_t bytes = std::min<uint64_t>(in.size(), left());
  const uint64_t end = position() + bytes;
  const uint64_t border = end - end % kPieceBytes;
  // All that is left, or up to the last border.
  if (bytes < left()) bytes = border > position() ? border - position() : 0;
  if (bytes == 0) return Progress::needs_input;
  if (kStoredPageWork * pages_of(bytes) > work_left_) {
    bytes = up_to_border(position(), bytes, kPieceBytes);
    if (kStoredPageWork * pages_of(bytes) > work_left_) return Progress::yields;
  }
  const vm::ByteResult result =
      area_.write(position(), in.bytes().first(static_cast<size_t>(bytes)), ticket());
  consume(in, result.bytes_done);
  spend(kStoredPageWork * pages_of(result.bytes_done));
  if (!took(result)) return fail_to(Stage::drain, result.code);
  return std::nullopt;
}

Transmission::Step Transmission::drain(ReceiveBuffer& in) noexcept {
  note_arrival(in);
  const uint64_t bytes = std::min<uint64_t>(in.size(), left());
  consume(in, bytes);
  done_ += bytes;
  if (left() != 0) return Progress::needs_input;
  stage_ = Stage::reply;
  return std::nullopt;
}

// --- TRIM, WRITE_ZEROES -----------------------------------------------------------------------

// Pieces end at borders that are multiples of the page size: no page is cut in two that the client
// has named whole.
Transmission::Step Transmission::trim() noexcept {
  if (left() == 0) {
    stage_ = Stage::reply;
    return std::nullopt;
  }
  if (work_left_ == 0) return Progress::yields;
  const uint64_t bytes = up_to_border(position(), left(), kFreeStepBytes);
  const vm::ByteResult result = area_.trim(position(), bytes);
  spend(1 + pages_of(bytes) / kFreedPagesAWorkPage);
  if (!took(result)) return fail_to(Stage::reply, result.code);
  TUCK_CHECK(result.bytes_done != 0);
  return std::nullopt;
}

Transmission::Step Transmission::write_zeroes() noexcept {
  if (left() == 0) {
    stage_ = Stage::reply;
    return std::nullopt;
  }
  if (work_left_ == 0) return Progress::yields;
  const uint64_t bytes = up_to_border(position(), left(), kFreeStepBytes);
  const bool keep_allocated = (request_.flags & kCommandNoHole) != 0;
  const vm::ByteResult result = area_.write_zeroes(position(), bytes, keep_allocated, ticket());
  spend(1 + pages_of(bytes) / kFreedPagesAWorkPage);
  if (!took(result)) return fail_to(Stage::reply, result.code);
  TUCK_CHECK(result.bytes_done != 0);
  return std::nullopt;
}

}  // namespace tuck::nbd

#include "frontends/nbd/connection.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "frontends/nbd/client_log.h"
#include "frontends/nbd/worker.h"

namespace tuck::nbd {

namespace {

// A client that does not take its last replies is not waited for any longer than this.
constexpr uint64_t kCloseTimeNs = 5'000'000'000;
// Less than this is not worth a receive while there is other work: room for 36 READs.
constexpr size_t kReceiveAheadBytesMin = 1024;

bool try_again_now(int error) noexcept {
  return error == EINTR;
}
// The kernel had no memory, or somebody who shares the descriptor has made it one that does not
// wait: at once would be for ever.
bool try_again_later(int error) noexcept {
  return error == ENOBUFS || error == ENOMEM || error == EAGAIN;
}

}  // namespace

Connection::Connection() noexcept : ticket_(&Connection::ticket_notified, this) {}

void Connection::ticket_notified(engine::Ticket& ticket) noexcept {
  auto* self = static_cast<Connection*>(ticket.context());
  self->worker_->post(*self);
}

void Connection::hand_over(Worker& worker, int input_fd, int output_fd, uint64_t number,
                           std::optional<Peer> peer) noexcept {
  TUCK_CHECK(phase_ == Phase::idle);
  worker_ = &worker;
  input_fd_ = input_fd;
  output_fd_ = output_fd;
  number_ = number;
  peer_ = peer;
  struct stat status {};
  // One descriptor that the system says nothing about is taken for what nearly all are: only a
  // socket can be told to send no signal when the client has gone.
  is_socket_ = input_fd == output_fd && (fstat(input_fd, &status) != 0 || S_ISSOCK(status.st_mode));
}

void Connection::start(uint64_t now) noexcept {
  phase_ = Phase::negotiating;
  receiving_ = sending_ = parked_ = wants_room_ = wants_input_ = draining_ = hung_up_ = false;
  discard_output_ = retry_receive_ = retry_send_ = failure_counted_ = false;
  deadline_ = now + static_cast<uint64_t>(worker_->options().negotiation_time_max.count());
  // There is a block for each connection.
  TUCK_CHECK(negotiation_.take_from(memory_->negotiating));
  negotiation_.begin(worker_->options().exports, worker_->options().negotiation,
                     static_cast<Admission*>(this));
  const ConnectionBuffers buffers = negotiation_.buffers();
  in_.reset(buffers.receive);
  out_.reset(buffers.send);
  OutputBuffer greeting(out_.reserve(kGreetingBytes));
  Negotiation::greet(greeting);
  out_.commit(greeting.size);
  worker_->want_ticks();
  worker_->make_ready(*this);
}

// --- A turn ----------------------------------------------------------------------------------

void Connection::run() noexcept {
  if (phase_ == Phase::idle) return;
  if (phase_ == Phase::closing) {
    finish_if_done();
    return;
  }
  wants_room_ = wants_input_ = false;
  const Progress progress =
      phase_ == Phase::negotiating ? negotiate() : transmission_->run(in_, out_);
  // Also where it has come back for something else: the ticket is to come back before this place
  // goes to another client.
  parked_ = phase_ == Phase::transmission && transmission_->ticket_is_out();
  send();
  react(progress);
}

// Asked by the negotiation. What is taken here is kept, whatever becomes of the client.
bool Connection::admit() noexcept {
  if (transmission_.there() || transmission_.take_from(memory_->transmitting)) return true;
  worker_->counters().entries_refused.add(1);
  worker_->log().write(spdlog::level::warn,
                       "client {}: refused, the buffers for {} clients are all in use", number_,
                       memory_->transmitting.blocks());
  return false;
}

Progress Connection::negotiate() noexcept {
  for (;;) {
    if (negotiation_->state() == Negotiation::State::transmission) {
      // The answers are in the small block.
      if (!out_.empty()) return Progress::needs_room;
      begin_transmission();
      return transmission_->run(in_, out_);
    }
    const auto room = out_.reserve(Negotiation::kAnswerBytesMax);
    if (room.empty()) return Progress::needs_room;
    OutputBuffer answers(room);
    in_.consume(negotiation_->consume(in_.bytes(), answers));
    out_.commit(answers.size);
    switch (negotiation_->state()) {
      case Negotiation::State::running:
        if (negotiation_->needs_room()) continue;
        return Progress::needs_input;
      case Negotiation::State::transmission:
        continue;
      case Negotiation::State::closed:
        return negotiation_->closed_in_order() ? Progress::disconnected : Progress::broken;
    }
  }
}

void Connection::begin_transmission() noexcept {
  const Negotiated& agreed = negotiation_->negotiated();
  // The beginning of a long name: the log's line has 250 bytes without allocating.
  worker_->log().write(spdlog::level::info, "client {}: uses export \"{}\"{}{}", number_,
                       std::string_view(agreed.export_->name).substr(0, 100),
                       agreed.export_->read_only ? ", read-only" : "", PeerText(peer_).c_str());
  transmission_.begin(agreed, ticket_, worker_->counters());
  // What the client has sent behind GO moves with it.
  const ConnectionBuffers buffers = transmission_.buffers();
  const std::span<const std::byte> left = in_.bytes();
  std::memcpy(buffers.receive.data(), left.data(), left.size());
  const size_t left_bytes = left.size();
  const uint64_t arrived = in_.arrived_ns(in_.size());
  in_.reset(buffers.receive);
  in_.received(left_bytes, arrived);
  out_.reset(buffers.send);
  worker_->counters().connections_serving.add(1);
  negotiation_.give_back_to(memory_->negotiating);
  phase_ = Phase::transmission;
  if (!draining_) deadline_ = 0;
}

void Connection::react(Progress progress) noexcept {
  switch (progress) {
    case Progress::needs_input:
      if (hung_up_) {
        if (phase_ == Phase::negotiating || in_.size() != 0 || transmission_->inside_request()) {
          hung_up_or_lost("it hung up in the middle");
        }
        close_when_sent();
      } else if (draining_) {
        close_when_sent();
      } else {
        receive();
        wants_input_ = true;
        wanting_since_ = worker_->now();
        suspected_ = false;
        if (may_stall_in_request()) worker_->want_ticks();
      }
      break;
    case Progress::needs_room:
      wants_room_ = true;
      break;
    case Progress::yields:
      worker_->make_ready(*this);
      receive_ahead();
      break;
    case Progress::waits:
      receive_ahead();
      break;
    case Progress::disconnected:
      close_when_sent();
      break;
    case Progress::broken:
      if (phase_ == Phase::negotiating && negotiation_->over_limits()) {
        worker_->counters().negotiations_over_limits.add(1);
      }
      blame(phase_ == Phase::negotiating ? negotiation_->close_reason() : transmission_->reason());
      close_when_sent();
      break;
  }
}

void Connection::receive() noexcept {
  if (receiving_ || retry_receive_) return;
  const auto into = in_.free_part();
  TUCK_CHECK(!into.empty());
  receiving_ = true;
  worker_->submit_receive(*this, input_fd_, is_socket_, into);
}

// While requests are still queued: a READ among those that come now may overtake them.
void Connection::receive_ahead() noexcept {
  if (receiving_ || retry_receive_ || hung_up_ || draining_) return;
  // What is left is moved to the front where it is little, or nothing else is to be done.
  constexpr size_t kMovedBytesMax = 4096;
  const bool move = parked_ || in_.size() <= kMovedBytesMax;
  const auto into = move ? in_.free_part() : in_.free_behind();
  if (into.size() < kReceiveAheadBytesMin) return;
  receiving_ = true;
  worker_->submit_receive(*this, input_fd_, is_socket_, into);
}

void Connection::send() noexcept {
  if (sending_ || retry_send_ || discard_output_) return;
  const auto bytes = out_.to_send();
  if (bytes.empty()) return;
  sending_ = true;
  sending_since_ = worker_->now();
  suspected_ = false;
  if (may_stall_replies()) worker_->want_ticks();
  worker_->submit_send(*this, output_fd_, is_socket_, bytes);
}

// --- What happened ---------------------------------------------------------------------------

void Connection::on_received(int result) noexcept {
  receiving_ = false;
  if (phase_ == Phase::closing) {
    finish_if_done();
    return;
  }
  if (result > 0) {
    in_.received(static_cast<size_t>(result), worker_->now());
  } else if (result == 0) {
    hung_up_ = true;
  } else if (try_again_later(-result)) {
    retry_receive_ = true;
    worker_->want_ticks();
    return;
  } else if (!try_again_now(-result) && result != -ECANCELED) {
    lost(-result);
    return;
  }
  worker_->make_ready(*this);
}

void Connection::on_sent(int result) noexcept {
  sending_ = false;
  if (result > 0) {
    out_.sent(static_cast<size_t>(result));
  } else if (try_again_later(-result)) {
    retry_send_ = true;
    worker_->want_ticks();
  } else if (!try_again_now(-result) && !discard_output_) {
    lost(result == 0 ? EPIPE : -result);
    return;
  }
  send();
  if (phase_ == Phase::closing) {
    finish_if_done();
  } else if (wants_room_) {
    worker_->make_ready(*this);
  }
}

void Connection::on_woken() noexcept {
  TUCK_CHECK(parked_);
  parked_ = false;
  transmission_->notified();
  worker_->make_ready(*this);
}

void Connection::on_tick(uint64_t now) noexcept {
  if (retry_receive_) {
    retry_receive_ = false;
    // What has not been asked for yet is not late.
    wanting_since_ = now;
    worker_->make_ready(*this);
  }
  if (retry_send_) {
    retry_send_ = false;
    send();
  }
  // Given up before: its operations have been called back, once.
  if (discard_output_) return;
  if (const char* reason = stalled(now)) {
    blame(reason);
    give_up();
    return;
  }
  if (deadline_ == 0 || now < deadline_) return;
  if (phase_ == Phase::negotiating && !draining_) {
    worker_->counters().negotiations_timed_out.add(1);
    blame("took too long to negotiate");
  } else {
    count_failure();
    worker_->log().write(spdlog::level::info, "client {}: did not take its replies in time",
                         number_);
  }
  give_up();
}

void Connection::drain(uint64_t deadline) noexcept {
  draining_ = true;
  if (discard_output_) return;
  deadline_ = deadline;
  worker_->want_ticks();
  if (phase_ == Phase::negotiating) {
    close_when_sent();
  } else if (receiving_) {
    worker_->cancel_receive(*this);
  }
}

// --- Clients that stop in the middle ---------------------------------------------------------

// Some of a request is there, and nothing but the rest of it is missing.
bool Connection::may_stall_in_request() const noexcept {
  return phase_ == Phase::transmission && wants_input_ &&
         worker_->options().stall.request.count() != 0 &&
         (in_.size() != 0 || transmission_->inside_request());
}

bool Connection::may_stall_replies() const noexcept {
  return phase_ == Phase::transmission && sending_ && worker_->options().stall.reply.count() != 0;
}

// Why the client is given up; nullptr: it is not. One tick is not enough to say so: where this
// process itself was stopped for a while, what the client has sent meanwhile is taken in behind the
// first tick.
const char* Connection::stalled(uint64_t now) noexcept {
  using std::chrono::nanoseconds;
  const StallLimits& limits = worker_->options().stall;
  const auto over = [now](uint64_t since, nanoseconds limit) {
    return now - since >= static_cast<uint64_t>(limit.count());
  };
  const bool in_request = may_stall_in_request() && over(wanting_since_, limits.request);
  const bool replies = may_stall_replies() && over(sending_since_, limits.reply);
  if ((in_request || replies) && !std::exchange(suspected_, true)) return nullptr;
  if (in_request) {
    worker_->counters().stalled_requests.add(1);
    return "it stopped in the middle of a request";
  }
  if (replies) {
    worker_->counters().stalled_replies.add(1);
    return "it does not take its replies";
  }
  return nullptr;
}

// --- The end ---------------------------------------------------------------------------------

// Whatever ends a connection may give it back: each of these is the last thing that a function
// does.

// Once a connection, however many things went wrong with it.
void Connection::count_failure() noexcept {
  if (failure_counted_) return;
  failure_counted_ = true;
  WorkerCounters& counters = worker_->counters();
  (transmission_ ? counters.connections_broken : counters.negotiations_failed).add(1);
}

// The client's fault, or its misfortune.
void Connection::blame(const char* reason) noexcept {
  count_failure();
  worker_->log().write(spdlog::level::warn, "client {}: connection closed: {}", number_, reason);
}

void Connection::close_when_sent() noexcept {
  phase_ = Phase::closing;
  const uint64_t latest = worker_->now() + kCloseTimeNs;
  deadline_ = draining_ && deadline_ != 0 ? std::min(deadline_, latest) : latest;
  worker_->want_ticks();
  if (receiving_) worker_->cancel_receive(*this);
  // The greeting of a client that came just before the stop has not been sent yet.
  send();
  finish_if_done();
}

// Going away while negotiating is everybody's right: port scans do it, and some clients that have
// only asked for a list.
void Connection::hung_up_or_lost(const char* how) noexcept {
  if (phase_ == Phase::transmission) count_failure();
  const auto level = phase_ == Phase::transmission ? spdlog::level::info : spdlog::level::debug;
  worker_->log().write(level, "client {}: connection lost: {}", number_, how);
}

void Connection::lost(int error) noexcept {
  // strerrordesc_np: constant text; strerror() loads translations, and allocates for them.
  const char* const what = strerrordesc_np(error);
  if (phase_ != Phase::closing) hung_up_or_lost(what != nullptr ? what : "an unknown error");
  give_up();
}

// Nothing more is sent; what is under way in the ring is called back.
void Connection::give_up() noexcept {
  phase_ = Phase::closing;
  discard_output_ = true;
  deadline_ = 0;
  if (is_socket_) shutdown(input_fd_, SHUT_RDWR);
  if (receiving_) worker_->cancel_receive(*this);
  if (sending_) worker_->cancel_send(*this);
  finish_if_done();
}

// The descriptors are closed and the buffers given away only when neither the kernel nor a ticket
// can come back to them, and the worker's list does not hold this connection.
void Connection::finish_if_done() noexcept {
  if (phase_ != Phase::closing || receiving_ || sending_ || parked_ || is_ready) return;
  if (!out_.empty() && !discard_output_) return;
  if (is_socket_) shutdown(input_fd_, SHUT_RDWR);
  close(input_fd_);
  if (output_fd_ != input_fd_) close(output_fd_);
  input_fd_ = output_fd_ = -1;
  deadline_ = 0;
  retry_receive_ = retry_send_ = false;
  if (transmission_) worker_->counters().connections_serving.add(UINT64_MAX);
  negotiation_.give_back_to(memory_->negotiating);
  transmission_.give_back_to(memory_->transmitting);
  phase_ = Phase::idle;
  worker_->log().write(spdlog::level::debug, "client {}: gone", number_);
  worker_->closed(*this);
}

}  // namespace tuck::nbd

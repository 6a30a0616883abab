#include "frontends/nbd/worker.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "frontends/nbd/clock.h"

namespace tuck::nbd {

namespace {

// What a connection may have prepared between two submissions that succeed: a receive and a send;
// the receive called back when the server stops, when the connection is to close, and when it gives
// up; the send called back when it gives up.
constexpr unsigned kOperationsAConnection = 6;
// After this many polls in a row that found nothing the worker sleeps at once, until a sleep turns
// out to have been shorter than a poll.
constexpr unsigned kUselessPollsMax = 8;
constexpr std::chrono::nanoseconds kTickMax = std::chrono::milliseconds(100);
constexpr std::chrono::nanoseconds kTickMin = std::chrono::milliseconds(1);

constexpr uint64_t kEventBits = 7;
static_assert(alignof(Connection) > kEventBits);

}  // namespace

Worker::Worker(WorkerOptions options) : options_(std::move(options)) {
  std::chrono::nanoseconds shortest = options_.negotiation_time_max;
  for (const std::chrono::nanoseconds limit : {options_.stall.request, options_.stall.reply}) {
    if (limit.count() != 0) shortest = std::min(shortest, limit);
  }
  const auto tick = std::clamp(shortest / 4, kTickMin, kTickMax);
  tick_time_.tv_nsec = tick.count();
}

Worker::~Worker() {
  if (wake_fd_ >= 0) close(wake_fd_);
}

Status Worker::open() {
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ < 0) {
    return Error{Errc::no_space, std::string("cannot make an eventfd: ") + std::strerror(errno)};
  }
  return ring_.open(kOperationsAConnection * options_.connections_max + 8);
}

// --- Any thread ------------------------------------------------------------------------------

void Worker::post(Connection& connection) noexcept {
  posting_.fetch_add(1, std::memory_order_relaxed);
  Connection* head = inbox_.load(std::memory_order_relaxed);
  do {
    connection.next_in_inbox.store(head, std::memory_order_relaxed);
    // Release: what the poster wrote to the connection is there when the worker takes it.
  } while (!inbox_.compare_exchange_weak(head, &connection, std::memory_order_release,
                                         std::memory_order_relaxed));
  // Whoever found the inbox empty wakes the worker; the others have been woken for already, unless
  // that failed.
  if (head == nullptr || wake_lost_.load(std::memory_order_relaxed)) {
    wake_lost_.store(!write_wake(), std::memory_order_relaxed);
  }
  // Release: pairs with the end of run(). The last touch of this object.
  posting_.fetch_sub(1, std::memory_order_release);
}

void Worker::stop(std::chrono::nanoseconds grace) noexcept {
  grace_ns_.store(grace.count(), std::memory_order_relaxed);
  stop_asked_.store(true, std::memory_order_release);
  // There is no other way to tell it.
  while (wake_fd_ >= 0 && !write_wake())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// No kernel is known to refuse this but for a signal; one that does for a moment is asked again.
bool Worker::write_wake() noexcept {
  constexpr int kAttempts = 8;
  const uint64_t one = 1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (write(wake_fd_, &one, sizeof one) == sizeof one) return true;
  }
  return false;
}

// --- The loop --------------------------------------------------------------------------------

void Worker::run() noexcept {
  now_ = now_ns();
  arm_wake();
  while (stop_deadline_ == 0 || open_head_ != nullptr) {
    wait();
    now_ = now_ns();
    ring_.drain([this](uint64_t user_data, int result) { on_completion(user_data, result); });
    run_ready();
  }
  // A ticket's last notification may have been taken from the inbox, for another's wake-up, before
  // its thread has written its own.
  Backoff backoff;
  while (posting_.load(std::memory_order_acquire) != 0)
    backoff.pause();
}

void Worker::wait() noexcept {
  if (ready_head_ != nullptr) {
    ring_.submit_and_collect();
    return;
  }
  if (options_.poll_time.count() == 0 || open_head_ == nullptr) {
    ring_.submit_and_wait();
    return;
  }
  if (useless_polls_ < kUselessPollsMax && poll()) return;
  const uint64_t asleep = now_ns();
  ring_.submit_and_wait();
  if (now_ns() - asleep < static_cast<uint64_t>(options_.poll_time.count())) useless_polls_ = 0;
}

bool Worker::poll() noexcept {
  const uint64_t end = now_ns() + static_cast<uint64_t>(options_.poll_time.count());
  ring_.submit_and_collect();
  while (!ring_.has_completions()) {
    if (now_ns() >= end) {
      ++useless_polls_;
      return false;
    }
    ring_.submit_and_collect();
  }
  useless_polls_ = 0;
  return true;
}

// One turn for each; who becomes ready meanwhile comes in the next round, after the kernel has been
// asked what else has come.
void Worker::run_ready() noexcept {
  Connection* connection = ready_head_;
  ready_head_ = ready_tail_ = nullptr;
  while (connection != nullptr) {
    Connection* next = connection->next_ready;
    connection->next_ready = nullptr;
    connection->is_ready = false;
    connection->run();
    connection = next;
  }
}

void Worker::make_ready(Connection& connection) noexcept {
  if (connection.is_ready) return;
  connection.is_ready = true;
  (ready_tail_ == nullptr ? ready_head_ : ready_tail_->next_ready) = &connection;
  ready_tail_ = &connection;
}

void Worker::on_completion(uint64_t user_data, int result) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what tag() made of the pointer.
  auto* connection = reinterpret_cast<Connection*>(user_data & ~kEventBits);
  switch (static_cast<Event>(user_data & kEventBits)) {
    case Event::receive:
      connection->on_received(result);
      break;
    case Event::send:
      connection->on_sent(result);
      break;
    case Event::wake:
      wake_armed_ = false;
      open_inbox();
      arm_wake();
      break;
    case Event::tick:
      tick_armed_ = false;
      tick();
      break;
    case Event::cancelled:
      break;  // the operation itself says how it ended
  }
}

// --- Wake-ups --------------------------------------------------------------------------------

void Worker::arm_wake() noexcept {
  if (wake_armed_) return;
  wake_armed_ = true;
  io_uring_sqe* sqe = ring_.prepare();
  io_uring_prep_read(sqe, wake_fd_, &wake_value_, sizeof wake_value_, 0);
  sqe->user_data = tag(nullptr, Event::wake);
}

void Worker::open_inbox() noexcept {
  // Before the inbox is taken: whoever was posted before the stop is seen to be there.
  const bool stop = stop_asked_.load(std::memory_order_acquire);
  Connection* posted = inbox_.exchange(nullptr, std::memory_order_acquire);
  Connection* in_order = nullptr;
  while (posted != nullptr) {
    Connection* next = posted->next_in_inbox.load(std::memory_order_relaxed);
    posted->next_in_inbox.store(in_order, std::memory_order_relaxed);
    in_order = posted;
    posted = next;
  }
  while (in_order != nullptr) {
    Connection& connection = *in_order;
    in_order = connection.next_in_inbox.load(std::memory_order_relaxed);
    if (connection.started()) {
      connection.on_woken();
      continue;
    }
    connection.previous_open = nullptr;
    connection.next_open = open_head_;
    if (open_head_ != nullptr) open_head_->previous_open = &connection;
    open_head_ = &connection;
    connection.start(now_);
  }
  if (stop && stop_deadline_ == 0) begin_stop();
}

void Worker::begin_stop() noexcept {
  stop_deadline_ = now_ + static_cast<uint64_t>(grace_ns_.load(std::memory_order_relaxed));
  for (Connection* connection = open_head_; connection != nullptr;) {
    Connection* next = connection->next_open;
    connection->drain(stop_deadline_);
    connection = next;
  }
}

void Worker::want_ticks() noexcept {
  if (tick_armed_) return;
  tick_armed_ = true;
  io_uring_sqe* sqe = ring_.prepare();
  io_uring_prep_timeout(sqe, &tick_time_, 0, 0);
  sqe->user_data = tag(nullptr, Event::tick);
}

void Worker::tick() noexcept {
  for (Connection* connection = open_head_; connection != nullptr;) {
    Connection* next = connection->next_open;
    if (connection->wants_ticks()) connection->on_tick(now_);
    connection = next;
  }
  for (Connection* connection = open_head_; connection != nullptr;
       connection = connection->next_open) {
    if (connection->wants_ticks()) {
      want_ticks();
      break;
    }
  }
}

// --- For the connections ---------------------------------------------------------------------

uint64_t Worker::tag(const Connection* connection, Event event) noexcept {
  return reinterpret_cast<uint64_t>(connection) | static_cast<uint64_t>(event);
}

void Worker::submit_receive(Connection& connection, int fd, bool socket,
                            std::span<std::byte> into) noexcept {
  io_uring_sqe* sqe = ring_.prepare();
  if (socket) {
    io_uring_prep_recv(sqe, fd, into.data(), into.size(), 0);
  } else {
    io_uring_prep_read(sqe, fd, into.data(), static_cast<unsigned>(into.size()), UINT64_MAX);
  }
  sqe->user_data = tag(&connection, Event::receive);
}

void Worker::submit_send(Connection& connection, int fd, bool socket,
                         std::span<const std::byte> bytes) noexcept {
  io_uring_sqe* sqe = ring_.prepare();
  if (socket) {
    io_uring_prep_send(sqe, fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } else {
    io_uring_prep_write(sqe, fd, bytes.data(), static_cast<unsigned>(bytes.size()), UINT64_MAX);
  }
  sqe->user_data = tag(&connection, Event::send);
}

void Worker::cancel_receive(Connection& connection) noexcept {
  cancel(connection, Event::receive);
}

void Worker::cancel_send(Connection& connection) noexcept {
  cancel(connection, Event::send);
}

void Worker::cancel(Connection& connection, Event event) noexcept {
  io_uring_sqe* sqe = ring_.prepare();
  io_uring_prep_cancel64(sqe, tag(&connection, event), 0);
  sqe->user_data = tag(nullptr, Event::cancelled);
}

void Worker::closed(Connection& connection) noexcept {
  if (connection.previous_open != nullptr) {
    connection.previous_open->next_open = connection.next_open;
  } else {
    open_head_ = connection.next_open;
  }
  if (connection.next_open != nullptr)
    connection.next_open->previous_open = connection.previous_open;
  connection.next_open = connection.previous_open = nullptr;
  // release: pairs with the acquire in load().
  load_.fetch_sub(1, std::memory_order_release);
  options_.give_back(connection);
}

}  // namespace tuck::nbd

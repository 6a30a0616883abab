#include "frontends/nbd/ring.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace tuck::nbd {

namespace {

// Best first. DEFER_TASKRUN (Linux 6.1) runs completions when the thread asks for them, rather than
// interrupting it in the middle of a codec; COOP_TASKRUN (5.19) is the next best.
constexpr unsigned kFlags[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    0,
};

}  // namespace

Ring::~Ring() {
  if (open_) io_uring_queue_exit(&ring_);
}

Status Ring::open(unsigned entries) {
  TUCK_CHECK(!open_);
  int result = 0;
  for (const unsigned flags : kFlags) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CLAMP;
    result = io_uring_queue_init_params(entries, &ring_, &params);
    if (result != -EINVAL) break;
  }
  if (result < 0) {
    return Error{Errc::no_space,
                 fmt::format("cannot set up io_uring: {}; it needs Linux 6.1 or newer, "
                             "kernel.io_uring_disabled=0, and enough lockable memory (ulimit -l)",
                             std::strerror(-result))};
  }
  open_ = true;
  // Saves looking the descriptor up on each system call; without it everything works as well.
  static_cast<void>(io_uring_register_ring_fd(&ring_));
  return std::nullopt;
}

io_uring_sqe* Ring::prepare() noexcept {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (sqe == nullptr) {
    io_uring_submit(&ring_);
    sqe = io_uring_get_sqe(&ring_);
  }
  // The ring has entries for all operations that its connections can have under way.
  TUCK_CHECK(sqe != nullptr);
  return sqe;
}

// Errors (EINTR, EAGAIN, EBUSY while completions wait to be taken) leave the operations in the
// queue; the next call submits them.
void Ring::submit_and_wait() noexcept {
  pause_after(io_uring_submit_and_wait(&ring_, 1));
}

void Ring::submit_and_collect() noexcept {
  pause_after(io_uring_submit_and_get_events(&ring_));
}

void Ring::pause_after(int result) noexcept {
  if (result >= 0 || result == -EINTR || has_completions()) return;
  // The kernel has no memory for an operation. Asking again at once would only take the processor
  // from whoever is to free some.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace tuck::nbd

// One io_uring, with the fastest flags that the kernel has.
#pragma once

#include <liburing.h>

#include <cstdint>

#include "base/base.h"

namespace tuck::nbd {

class Ring {
 public:
  Ring() noexcept = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Once; from then on the ring belongs to the calling thread. entries: how many operations may be
  // prepared between two submissions.
  Status open(unsigned entries);

  // An operation to fill in; submitted by the next submit_…().
  io_uring_sqe* prepare() noexcept;
  // One system call: submits, and comes back when at least one completion is there, or after a
  // moment where the kernel could not.
  void submit_and_wait() noexcept;
  // Submits, collects what has completed, does not wait.
  void submit_and_collect() noexcept;
  bool has_completions() noexcept { return io_uring_cq_ready(&ring_) != 0; }

  template <class Handler>
  void drain(Handler&& handler) noexcept {
    unsigned head = 0;
    unsigned seen = 0;
    io_uring_cqe* completion = nullptr;
    io_uring_for_each_cqe(&ring_, head, completion) {
      handler(completion->user_data, completion->res);
      ++seen;
    }
    io_uring_cq_advance(&ring_, seen);
  }

 private:
  void pause_after(int result) noexcept;

  io_uring ring_{};
  bool open_ = false;
};

}  // namespace tuck::nbd

// Server::serve_one(): one client on two descriptors, in the calling thread.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <ctime>

#include "frontends/nbd/client_log.h"
#include "frontends/nbd/connection_slots.h"
#include "frontends/nbd/options.h"
#include "frontends/nbd/worker.h"

namespace tuck::nbd {

namespace {

// A client that has gone away is an error of a write. On a pipe the system sends a signal besides,
// which is held back from this thread and taken away at the end.
class HoldBackSigpipe {
 public:
  HoldBackSigpipe() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~HoldBackSigpipe() {
    const timespec no_time{};
    if (!was_pending_) {
      while (sigtimedwait(&pipe_, nullptr, &no_time) > 0) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HoldBackSigpipe(const HoldBackSigpipe&) = delete;
  HoldBackSigpipe& operator=(const HoldBackSigpipe&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

// io_uring gives EAGAIN back at once for descriptors that must not block, rather than waiting. The
// flag is not the descriptor's alone: whoever shares the terminal or the pipe gets it back as it
// was, through a duplicate, for the connection closes the descriptor itself.
class MakeBlocking {
 public:
  explicit MakeBlocking(int fd) noexcept {
    flags_ = fcntl(fd, F_GETFL);
    if (flags_ < 0 || (flags_ & O_NONBLOCK) == 0) return;
    duplicate_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    // What could not be put back is left as it is: then the connection tries again now and then.
    if (duplicate_ >= 0) fcntl(fd, F_SETFL, flags_ & ~O_NONBLOCK);
  }
  ~MakeBlocking() {
    if (duplicate_ < 0) return;
    fcntl(duplicate_, F_SETFL, flags_);
    close(duplicate_);
  }
  MakeBlocking(const MakeBlocking&) = delete;
  MakeBlocking& operator=(const MakeBlocking&) = delete;

 private:
  int flags_ = 0;
  int duplicate_ = -1;
};

// An error leaves the descriptors open.
Status serve(const ServerOptions& options, int input_fd, int output_fd) {
  ClientLog log;
  ConnectionSlots slots;
  if (Status error = slots.allocate(1, options.in_flight_bytes_max, options.keep_buffers))
    return error;
  WorkerOptions worker_options = worker_options_of(options, log);
  worker_options.connections_max = 1;
  Worker* itself = nullptr;
  worker_options.give_back = [&itself](Connection&) { itself->stop(std::chrono::nanoseconds(0)); };
  Worker worker(std::move(worker_options));
  itself = &worker;
  if (Status error = worker.open()) return error;

  // Undone in the opposite order, which is right for one descriptor that is both as well.
  const MakeBlocking blocking_input(input_fd);
  const MakeBlocking blocking_output(output_fd);
  Connection* connection = slots.take();
  worker.expect_one();
  connection->hand_over(worker, input_fd, output_fd, 1, std::nullopt);
  worker.post(*connection);
  worker.run();
  return std::nullopt;
}

}  // namespace

Status Server::serve_one(ServerOptions options, int input_fd, int output_fd) {
  const HoldBackSigpipe no_sigpipe;
  options.listen.clear();
  Status error = or_no_memory("the server", [&] {
    Status wrong = check_options(options);
    return wrong ? wrong : serve(options, input_fd, output_fd);
  });
  if (error) {
    close(input_fd);
    if (output_fd != input_fd) close(output_fd);
  }
  return error;
}

}  // namespace tuck::nbd

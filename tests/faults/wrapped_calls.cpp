#include "tests/faults/wrapped_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace tuck::test {

namespace {

enum class Call : size_t {
  accept4,
  bind,
  close,
  connect,
  eventfd,
  fchmod,
  fcntl,
  fstat,
  getrlimit,
  getsockname,
  getsockopt,
  io_uring_queue_init_params,
  io_uring_register_ring_fd,
  io_uring_submit,
  io_uring_submit_and_get_events,
  io_uring_submit_and_wait,
  listen,
  lstat,
  madvise,
  mmap,
  munmap,
  opendir,
  operator_new,
  poll,
  pthread_setname_np,
  setrlimit,
  setsockopt,
  shutdown,
  socket,
  start_thread,
  unlink,
  write,
  // Operations of a ring.
  recv,
  send,
  uring_read,
  uring_write,
  timeout,
  cancel,
  count_,
};
constexpr size_t kCalls = static_cast<size_t>(Call::count_);

constexpr std::array<std::string_view, kCalls> kNames = {
    "accept4",
    "bind",
    "close",
    "connect",
    "eventfd",
    "fchmod",
    "fcntl",
    "fstat",
    "getrlimit",
    "getsockname",
    "getsockopt",
    "io_uring_queue_init_params",
    "io_uring_register_ring_fd",
    "io_uring_submit",
    "io_uring_submit_and_get_events",
    "io_uring_submit_and_wait",
    "listen",
    "lstat",
    "madvise",
    "mmap",
    "munmap",
    "opendir",
    "operator_new",
    "poll",
    "pthread_setname_np",
    "setrlimit",
    "setsockopt",
    "shutdown",
    "socket",
    "start_thread",
    "unlink",
    "write",
    "recv",
    "send",
    "uring_read",
    "uring_write",
    "timeout",
    "cancel",
};

struct State {
  std::array<std::atomic<uint64_t>, kCalls> counts{};
  std::atomic<size_t> call{kCalls};  // kCalls: none fails
  std::atomic<uint64_t> nth{0};
  std::atomic<int> error{0};
  std::atomic<bool> for_good{false};
  std::atomic<uint64_t> hits{0};
  std::atomic<int64_t> mapped{0};
};
State state;
thread_local int immune = 0;

size_t index_of(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) std::abort();
  return static_cast<size_t>(found - kNames.begin());
}

// Counts the call. The error that it is to fail with; 0: none.
int fault_of(Call which) {
  if (immune != 0) return 0;
  const auto index = static_cast<size_t>(which);
  const uint64_t number = state.counts[index].fetch_add(1) + 1;
  if (state.call.load() != index) return 0;
  const uint64_t nth = state.nth.load();
  if (state.for_good.load() ? number < nth : number != nth) return 0;
  state.hits.fetch_add(1);
  return state.error.load();
}

// The two ways in which C functions fail.
template <class Real, class... Args>
auto by_errno(Call which, Real real, Args... args) {
  using Returned = decltype(real(args...));
  if (const int error = fault_of(which)) {
    errno = error;
    return static_cast<Returned>(-1);
  }
  return real(args...);
}
template <class Real, class... Args>
int by_value(Call which, int sign, Real real, Args... args) {
  if (const int error = fault_of(which)) return sign * error;
  return real(args...);
}

// --- Operations of a ring --------------------------------------------------------------------

struct Spoiled {
  uint64_t user_data = 0;
  int error = 0;
};
// Of this thread's ring: a ring belongs to one thread.
// Full only where faults for good meet more operations than a few clients have.
thread_local std::array<Spoiled, 64> spoiled;
thread_local size_t spoiled_count = 0;
thread_local unsigned looked_at = 0;

Call operation_of(uint8_t opcode) {
  switch (opcode) {
    case IORING_OP_RECV:
      return Call::recv;
    case IORING_OP_SEND:
      return Call::send;
    case IORING_OP_READ:
      return Call::uring_read;
    case IORING_OP_WRITE:
      return Call::uring_write;
    case IORING_OP_TIMEOUT:
      return Call::timeout;
    case IORING_OP_ASYNC_CANCEL:
      return Call::cancel;
    default:
      // An operation that nobody has thought of: it belongs in the list above.
      std::abort();
  }
}

// Operations that are to fail become ones that do nothing.
void before_submission(io_uring* ring) {
  for (; looked_at != ring->sq.sqe_tail; ++looked_at) {
    io_uring_sqe& sqe = ring->sq.sqes[looked_at & ring->sq.ring_mask];
    const uint64_t user_data = sqe.user_data;
    const int error = fault_of(operation_of(sqe.opcode));
    if (error == 0) continue;
    sqe = io_uring_sqe{};
    sqe.opcode = IORING_OP_NOP;
    sqe.user_data = user_data;
    if (spoiled_count == spoiled.size()) std::abort();
    spoiled[spoiled_count++] = {user_data, error};
  }
}

// Doing nothing is complete at once; it completes with the error instead.
void after_submission(io_uring* ring) {
  if (spoiled_count == 0) return;
  unsigned head = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(ring, head, cqe) {
    auto* const end = spoiled.data() + spoiled_count;
    auto* const found = std::find_if(spoiled.data(), end, [cqe](const Spoiled& one) {
      return one.user_data == cqe->user_data && cqe->res == 0;
    });
    if (found == end) continue;
    cqe->res = -found->error;
    *found = spoiled[--spoiled_count];
  }
}

template <class Real, class... Args>
int submitting(Call which, Real real, io_uring* ring, Args... args) {
  if (const int error = fault_of(which)) return -error;
  before_submission(ring);
  const int result = real(ring, args...);
  after_submission(ring);
  return result;
}

}  // namespace

std::span<const std::string_view> wrapped_calls() {
  return kNames;
}

void arm(const Fault& fault) {
  lift();
  for (auto& count : state.counts)
    count.store(0);
  state.hits.store(0);
  state.nth.store(fault.nth);
  state.error.store(fault.error);
  state.for_good.store(fault.for_good);
  state.call.store(index_of(fault.call));
}

void lift() {
  state.call.store(kCalls);
}

uint64_t hits() {
  return state.hits.load();
}
uint64_t calls_of(std::string_view call) {
  return state.counts[index_of(call)].load();
}
int64_t mapped_bytes() {
  return state.mapped.load();
}

Immune::Immune() {
  ++immune;
}
Immune::~Immune() {
  --immune;
}

Exposed::Exposed() : was_immune_(std::exchange(immune, 0)) {}
Exposed::~Exposed() {
  immune = was_immune_;
}

bool may_allocate() {
  return fault_of(Call::operator_new) == 0;
}

// --- The wrappers ----------------------------------------------------------------------------

// What --wrap=f makes of a call to f is __wrap_f, and __real_f is f itself; the names here are
// ours. __VA_ARGS__ are the parameters.
#define TUCK_WRAP(result, name, ...)                       \
  result real_##name(__VA_ARGS__) asm("__real_" #name);    \
  result wrapped_##name(__VA_ARGS__) asm("__wrap_" #name); \
  result wrapped_##name(__VA_ARGS__)

extern "C" {

TUCK_WRAP(int, accept4, int fd, sockaddr* address, socklen_t* length, int flags) {
  return by_errno(Call::accept4, real_accept4, fd, address, length, flags);
}
TUCK_WRAP(int, bind, int fd, const sockaddr* address, socklen_t length) {
  return by_errno(Call::bind, real_bind, fd, address, length);
}
TUCK_WRAP(int, close, int fd) {
  // The system takes the descriptor away, whatever it says.
  const int error = fault_of(Call::close);
  const int result = real_close(fd);
  if (error == 0) return result;
  errno = error;
  return -1;
}
TUCK_WRAP(int, connect, int fd, const sockaddr* address, socklen_t length) {
  return by_errno(Call::connect, real_connect, fd, address, length);
}
TUCK_WRAP(int, eventfd, unsigned value, int flags) {
  return by_errno(Call::eventfd, real_eventfd, value, flags);
}
TUCK_WRAP(int, fchmod, int fd, mode_t mode) {
  return by_errno(Call::fchmod, real_fchmod, fd, mode);
}
// The real one takes a third argument or none; a register that nobody looks at does no harm.
TUCK_WRAP(int, fcntl, int fd, int command, long argument) {
  return by_errno(Call::fcntl, real_fcntl, fd, command, argument);
}
TUCK_WRAP(int, fstat, int fd, struct stat* status) {
  return by_errno(Call::fstat, real_fstat, fd, status);
}
TUCK_WRAP(int, getrlimit, __rlimit_resource_t which, rlimit* limit) {
  return by_errno(Call::getrlimit, real_getrlimit, which, limit);
}
TUCK_WRAP(int, setrlimit, __rlimit_resource_t which, const rlimit* limit) {
  return by_errno(Call::setrlimit, real_setrlimit, which, limit);
}
TUCK_WRAP(int, getsockname, int fd, sockaddr* address, socklen_t* length) {
  return by_errno(Call::getsockname, real_getsockname, fd, address, length);
}
TUCK_WRAP(int, getsockopt, int fd, int level, int name, void* value, socklen_t* length) {
  return by_errno(Call::getsockopt, real_getsockopt, fd, level, name, value, length);
}
TUCK_WRAP(int, listen, int fd, int backlog) {
  return by_errno(Call::listen, real_listen, fd, backlog);
}
TUCK_WRAP(int, lstat, const char* path, struct stat* status) {
  return by_errno(Call::lstat, real_lstat, path, status);
}
TUCK_WRAP(int, madvise, void* at, size_t bytes, int advice) {
  return by_errno(Call::madvise, real_madvise, at, bytes, advice);
}
TUCK_WRAP(void*, mmap, void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (const int error = fault_of(Call::mmap)) {
    errno = error;
    return MAP_FAILED;
  }
  void* const mapped = real_mmap(at, bytes, protection, flags, fd, offset);
  if (mapped != MAP_FAILED) state.mapped.fetch_add(static_cast<int64_t>(bytes));
  return mapped;
}
TUCK_WRAP(int, munmap, void* at, size_t bytes) {
  // It counts as unmapped: whoever was refused has done what can be done.
  state.mapped.fetch_sub(static_cast<int64_t>(bytes));
  return by_errno(Call::munmap, real_munmap, at, bytes);
}
TUCK_WRAP(DIR*, opendir, const char* path) {
  if (const int error = fault_of(Call::opendir)) {
    errno = error;
    return nullptr;
  }
  return real_opendir(path);
}
TUCK_WRAP(int, poll, pollfd* fds, nfds_t count, int timeout) {
  return by_errno(Call::poll, real_poll, fds, count, timeout);
}
TUCK_WRAP(int, pthread_setname_np, pthread_t thread, const char* name) {
  return by_value(Call::pthread_setname_np, 1, real_pthread_setname_np, thread, name);
}
TUCK_WRAP(int, setsockopt, int fd, int level, int name, const void* value, socklen_t length) {
  return by_errno(Call::setsockopt, real_setsockopt, fd, level, name, value, length);
}
TUCK_WRAP(int, shutdown, int fd, int how) {
  return by_errno(Call::shutdown, real_shutdown, fd, how);
}
TUCK_WRAP(int, socket, int domain, int type, int protocol) {
  return by_errno(Call::socket, real_socket, domain, type, protocol);
}
TUCK_WRAP(int, unlink, const char* path) {
  return by_errno(Call::unlink, real_unlink, path);
}
TUCK_WRAP(ssize_t, write, int fd, const void* bytes, size_t count) {
  return by_errno(Call::write, real_write, fd, bytes, count);
}

TUCK_WRAP(int, io_uring_queue_init_params, unsigned entries, io_uring* ring,
          io_uring_params* params) {
  spoiled_count = 0;
  looked_at = 0;
  return by_value(Call::io_uring_queue_init_params, -1, real_io_uring_queue_init_params, entries,
                  ring, params);
}
TUCK_WRAP(int, io_uring_register_ring_fd, io_uring* ring) {
  return by_value(Call::io_uring_register_ring_fd, -1, real_io_uring_register_ring_fd, ring);
}
TUCK_WRAP(int, io_uring_submit, io_uring* ring) {
  return submitting(Call::io_uring_submit, real_io_uring_submit, ring);
}
TUCK_WRAP(int, io_uring_submit_and_get_events, io_uring* ring) {
  return submitting(Call::io_uring_submit_and_get_events, real_io_uring_submit_and_get_events,
                    ring);
}
TUCK_WRAP(int, io_uring_submit_and_wait, io_uring* ring, unsigned wait_for) {
  return submitting(Call::io_uring_submit_and_wait, real_io_uring_submit_and_wait, ring, wait_for);
}

// std::thread's constructor. pthread_create itself is called by the C++ library, where --wrap does
// not reach.
#define TUCK_START_THREAD \
  "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"
void real_start_thread(void* self, void* body, void (*depend)()) asm("__real_" TUCK_START_THREAD);
void wrapped_start_thread(void* self, void* body,
                          void (*depend)()) asm("__wrap_" TUCK_START_THREAD);
void wrapped_start_thread(void* self, void* body, void (*depend)()) {
  if (const int error = fault_of(Call::start_thread)) {
    throw std::system_error(error, std::generic_category());
  }
  real_start_thread(self, body, depend);
}

}  // extern "C"

}  // namespace tuck::test

#include "bench/corpus/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "bench/corpus/process_maps.h"

namespace tuck::corpus {

namespace {

// Words of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst of the kernel).
constexpr uint64_t kPresent = 1ull << 63;
constexpr uint64_t kSwapped = 1ull << 62;
constexpr uint64_t kFileOrShared = 1ull << 61;
constexpr uint64_t kExclusive = 1ull << 56;

// Words of pagemap read at once (32 MiB of address space: reservations of many GiB are common and
// empty), and pages read at once.
constexpr size_t kBatchWords = 8192;
constexpr size_t kBatchPages = 256;

// A thread in an uninterruptible wait stops only after it; on a loaded machine that takes a while.
constexpr auto kStopPatience = std::chrono::seconds(10);

// By system call: the C library of Debian 12 declares these without extern "C".
int open_process(pid_t pid) noexcept {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

bool send_signal(int pidfd, int signal) noexcept {
  return syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

Result<Descriptor, Error> open_proc(pid_t pid, const char* name) {
  const std::string path = fmt::format("/proc/{}/{}", pid, name);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return proc_error(pid, name, errno);
  return Descriptor(fd);
}

bool is_cancelled(const CaptureOptions& options) {
  return options.cancelled != nullptr && options.cancelled->load(std::memory_order_relaxed);
}

Error cancelled_error(pid_t pid) {
  return Error{Errc::shutting_down, fmt::format("capture of process {} interrupted", pid)};
}

Error ended_error(pid_t pid) {
  return Error{Errc::invalid, fmt::format("process {} ended during the capture", pid)};
}

// Holds a process stopped. By descriptor, so that a later process with the same number is never
// sent a signal.
class StoppedProcess {
 public:
  StoppedProcess(pid_t pid, const Descriptor& pidfd) noexcept : pid_(pid), pidfd_(pidfd.get()) {}
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  ~StoppedProcess() {
    if (must_continue_) send_signal(pidfd_, SIGCONT);
  }

  Status stop(const CaptureOptions& options) {
    if (is_stopped(pid_)) return {};
    if (!send_signal(pidfd_, SIGSTOP)) {
      return Error{Errc::invalid,
                   fmt::format("cannot stop process {}: {}", pid_, std::strerror(errno))};
    }
    must_continue_ = true;
    const auto deadline = std::chrono::steady_clock::now() + kStopPatience;
    while (!is_stopped(pid_)) {
      if (is_cancelled(options)) return cancelled_error(pid_);
      if (!send_signal(pidfd_, 0)) return ended_error(pid_);
      if (std::chrono::steady_clock::now() > deadline) {
        return Error{
            Errc::invalid,
            fmt::format("process {} did not stop within {} s; --no-stop captures it running", pid_,
                        kStopPatience.count())};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  }

 private:
  const pid_t pid_;
  const int pidfd_;
  bool must_continue_ = false;
};

// Copies the pages of one process, mapping by mapping.
class Copier {
 public:
  Copier(pid_t pid, int mem, int pagemap, PageFileWriter& out, const CaptureOptions& options)
      : pid_(pid),
        mem_(mem),
        pagemap_(pagemap),
        out_(out),
        options_(options),
        words_(kBatchWords),
        buffer_(kBatchPages * kPageSize) {}

  Status copy(const Mapping& mapping) {
    const uint64_t pages_before = report_.pages;
    const uint64_t end = mapping.end / kPageSize;
    populated_ = 0;
    for (uint64_t first = mapping.begin / kPageSize; first < end;) {
      // The rest of a stopped process's mapping is empty when all its pages have been seen.
      if (options_.stop && populated_ >= mapping.populated_pages) break;
      if (is_cancelled(options_)) return cancelled_error(pid_);
      const auto count = static_cast<size_t>(std::min<uint64_t>(kBatchWords, end - first));
      if (Status status = copy_batch(first, count)) return status;
      first += count;
    }
    report_.mappings += report_.pages > pages_before;
    return {};
  }
  const CaptureReport& report() const noexcept { return report_; }

 private:
  // Whether a page counts in the mapping's Rss or Swap for sure: the shared zero page, which looks
  // like an anonymous page shared with a forked process, does not.
  static bool is_counted(uint64_t word) noexcept {
    return (word & kSwapped) != 0 ||
           ((word & kPresent) != 0 && (word & (kExclusive | kFileOrShared)) != 0);
  }
  static bool is_wanted(uint64_t word) noexcept {
    return (word & (kPresent | kSwapped)) != 0 && (word & kFileOrShared) == 0;
  }

  Status copy_batch(uint64_t first, size_t count) {
    const ssize_t got = pread(pagemap_, words_.data(), count * sizeof(uint64_t),
                              static_cast<off_t>(first * sizeof(uint64_t)));
    if (got < 0) return proc_error(pid_, "pagemap", errno);
    // The file ends where the address space does, and with the process.
    if (static_cast<size_t>(got) != count * sizeof(uint64_t)) return ended_error(pid_);
    const auto words = std::span<const uint64_t>(words_).first(count);
    populated_ += static_cast<uint64_t>(std::count_if(words.begin(), words.end(), is_counted));
    for (size_t i = 0; i < count;) {
      size_t run = 0;
      while (i + run < count && run < kBatchPages && is_wanted(words[i + run]))
        ++run;
      if (run > 0) {
        if (Status status = copy_run(first + i, words.subspan(i, run))) return status;
      }
      i += std::max<size_t>(run, 1);
    }
    return {};
  }

  // Reads the pages at once where that works, and one by one where it does not.
  Status copy_run(uint64_t first, std::span<const uint64_t> words) {
    size_t done = 0;
    while (done < words.size()) {
      const size_t want = (words.size() - done) * kPageSize;
      const ssize_t got =
          pread(mem_, buffer_.data(), want, static_cast<off_t>((first + done) * kPageSize));
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) return ended_error(pid_);
      const size_t pages = got < 0 ? 0 : static_cast<size_t>(got) / kPageSize;
      for (size_t i = 0; i < pages; ++i) {
        if (Status status = put(words[done + i], i)) return status;
      }
      done += pages;
      if (pages == 0) {
        ++report_.unreadable;
        ++done;
      }
    }
    return {};
  }

  // The shared zero page shows as present, anonymous and shared. A page of a process's own that is
  // all zeroes and shared with a forked relative is left out with it; there are hardly any.
  Status put(uint64_t word, size_t index) {
    const auto page = std::span<const std::byte>(buffer_).subspan(index * kPageSize, kPageSize);
    const bool exclusive_or_swapped = (word & (kExclusive | kSwapped)) != 0;
    if (!exclusive_or_swapped &&
        std::all_of(page.begin(), page.end(), [](std::byte b) { return b == std::byte{0}; })) {
      return {};
    }
    ++report_.pages;
    return out_.append(page);
  }

  const pid_t pid_;
  const int mem_;
  const int pagemap_;
  PageFileWriter& out_;
  const CaptureOptions& options_;
  std::vector<uint64_t> words_;
  std::vector<std::byte> buffer_;
  uint64_t populated_ = 0;  // counted pages of the current mapping so far
  CaptureReport report_;
};

}  // namespace

Result<CaptureReport, Error> capture(pid_t pid, PageFileWriter& out,
                                     const CaptureOptions& options) {
  if (pid == getpid()) return Error{Errc::invalid, "a process cannot capture itself"};
  const int pidfd = pid > 0 ? open_process(pid) : -1;
  if (pidfd < 0) return proc_error(pid, "", pid > 0 ? errno : ESRCH);
  const Descriptor process(pidfd);
  auto mem = open_proc(pid, "mem");
  if (!mem) return mem.error();
  auto pagemap = open_proc(pid, "pagemap");
  if (!pagemap) return pagemap.error();

  StoppedProcess stopped(pid, process);
  if (options.stop) {
    if (Status status = stopped.stop(options)) return *status;
  }
  auto mappings = swappable_mappings(pid);
  if (!mappings) return mappings.error();
  Copier copier(pid, mem->get(), pagemap->get(), out, options);
  for (const Mapping& mapping : *mappings) {
    if (Status status = copier.copy(mapping)) return *status;
  }
  return copier.report();
}

}  // namespace tuck::corpus

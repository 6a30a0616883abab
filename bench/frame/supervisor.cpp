#include "bench/frame/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

namespace tuck::bench {

namespace {

// How long a zram device may be in use by somebody who looks at new devices (udev).
constexpr int kBusyTries = 100;
constexpr auto kBusyPause = std::chrono::milliseconds(50);

int journal = -1;  // the worker's end of the pipe to the restorer
int last_number = 0;

Error failed(const Undo& undo, const char* what) {
  return Error{Errc::invalid, fmt::format("{} {}: {}", what, undo.target, std::strerror(errno))};
}

Status write_file(const Undo& undo) {
  const int fd = open(undo.target.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return failed(undo, "cannot open");
  const ssize_t written = write(fd, undo.value.data(), undo.value.size());
  Status status =
      written == static_cast<ssize_t>(undo.value.size()) ? Status{} : failed(undo, "cannot write");
  close(fd);
  return status;
}

Status write_until_free(const Undo& undo, const std::string& path, const std::string& value) {
  Status status;
  for (int i = 0; i < kBusyTries; ++i) {
    status = write_file({Undo::Kind::write_file, path, value});
    if (!status || errno != EBUSY) return status;
    std::this_thread::sleep_for(kBusyPause);
  }
  return failed(undo, "still in use: zram");
}

Status remove_zram(const Undo& undo) {
  const std::string folder = "/sys/block/zram" + undo.target;
  if (access(folder.c_str(), F_OK) != 0) return {};
  if (Status status = write_until_free(undo, folder + "/reset", "1")) return status;
  return write_until_free(undo, "/sys/class/zram-control/hot_remove", undo.target);
}

Status perform(const Undo& undo) {
  switch (undo.kind) {
    case Undo::Kind::write_file:
      return write_file(undo);
    case Undo::Kind::swap_off:
      // EINVAL: it is no swap device (any more).
      if (swapoff(undo.target.c_str()) != 0 && errno != EINVAL && errno != ENOENT)
        return failed(undo, "cannot swapoff");
      return {};
    case Undo::Kind::remove_zram:
      return remove_zram(undo);
    case Undo::Kind::remove_tree: {
      std::error_code ignored;
      std::filesystem::remove_all(undo.target, ignored);
      return {};
    }
  }
  return {};
}

// One line a step: "+NUMBER KIND TARGET\tVALUE" or "-NUMBER". Below PIPE_BUF, so that each is
// written whole or not at all.
void tell_restorer(const std::string& line) {
  if (journal >= 0 && write(journal, line.data(), line.size()) < 0)
    fmt::print(stderr, "tuck-bench: nobody restores this machine if this is killed: {}\n",
               std::strerror(errno));
}

void note_line(std::map<int, Undo>& open, const char* line) {
  int number = 0;
  int length = 0;
  char kind = 0;
  if (std::sscanf(line, "+%d %c %n", &number, &kind, &length) == 2) {
    const std::string rest(line + length);
    const size_t tab = rest.find('\t');
    open[number] = {Undo::Kind{kind}, rest.substr(0, tab),
                    tab == std::string::npos ? "" : rest.substr(tab + 1)};
  } else if (std::sscanf(line, "-%d", &number) == 1) {
    open.erase(number);
  }
}

[[noreturn]] void run_restorer(int pipe) {
  // Its own session: a terminal's signals are for the others.
  setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
    signal(number, SIG_IGN);
  std::map<int, Undo> open;
  std::FILE* const lines = fdopen(pipe, "r");
  char* line = nullptr;
  size_t room = 0;
  while (lines != nullptr && getline(&line, &room, lines) > 0) {
    line[std::strcspn(line, "\n")] = '\0';
    note_line(open, line);
  }
  int status = 0;
  for (auto step = open.rbegin(); step != open.rend(); ++step) {
    if (const Status wrong = perform(step->second)) {
      fmt::print(stderr, "tuck-bench: not restored: {}\n", wrong->message);
      status = 1;
    }
  }
  _exit(status);
}

volatile sig_atomic_t asked_to_end = 0;
pid_t worker = -1;

// The worker and what it has started die at once: nothing there has to be saved, and the restorer
// begins when the worker's end of the pipe is closed.
void end_worker(int number) {
  asked_to_end = number;
  if (worker > 0) kill(worker, SIGKILL);
}

[[noreturn]] void wait_for_both(pid_t restorer) {
  int ended = 0;
  while (waitpid(worker, &ended, 0) < 0 && errno == EINTR) {
  }
  int restored = 0;
  while (waitpid(restorer, &restored, 0) < 0 && errno == EINTR) {
  }
  if (asked_to_end != 0) _exit(128 + asked_to_end);
  if (WIFSIGNALED(ended)) {
    fmt::print(stderr, "tuck-bench: ended by signal {}\n", WTERMSIG(ended));
    _exit(128 + WTERMSIG(ended));
  }
  _exit(WEXITSTATUS(ended));
}

}  // namespace

Status supervise() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{Errc::no_space, fmt::format("no pipe: {}", std::strerror(errno))};
  const pid_t restorer = fork();
  if (restorer == 0) {
    close(ends[1]);
    run_restorer(ends[0]);
  }
  close(ends[0]);
  if (restorer < 0)
    return Error{Errc::no_space, fmt::format("no process: {}", std::strerror(errno))};
  // A signal that comes before the worker is there waits for it.
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t parent = getpid();
  worker = fork();
  if (worker == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // A terminal's Ctrl-C goes to the parent, which ends this one; a group of its own keeps the
    // programs that it starts alive for exactly as long.
    setpgid(0, 0);
    signal(SIGPIPE, SIG_IGN);
    journal = ends[1];
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return {};
  }
  close(ends[1]);
  if (worker < 0) return Error{Errc::no_space, fmt::format("no process: {}", std::strerror(errno))};
  struct sigaction action {};
  action.sa_handler = end_worker;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    sigaction(number, &action, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  wait_for_both(restorer);
}

Restored::Restored(Undo undo) : undo_(std::move(undo)), number_(++last_number) {
  tell_restorer(fmt::format("+{} {} {}\t{}\n", number_, static_cast<char>(undo_.kind), undo_.target,
                            undo_.value));
}

Restored::Restored(Restored&& other) noexcept
    : undo_(std::move(other.undo_)), number_(std::exchange(other.number_, 0)) {}

Restored::~Restored() {
  if (const Status wrong = restore())
    fmt::print(stderr, "tuck-bench: not restored: {}\n", wrong->message);
}

Status Restored::restore() {
  if (number_ == 0) return {};
  Status status = perform(undo_);
  tell_restorer(fmt::format("-{}\n", std::exchange(number_, 0)));
  return status;
}

}  // namespace tuck::bench

#include "bench/frame/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace tuck::bench {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(5);
constexpr size_t kOutputShown = 400;

struct Pipes {
  int to_child[2] = {-1, -1};
  int from_child[2] = {-1, -1};
};

void close_all(const Pipes& pipes) {
  for (const int fd :
       {pipes.to_child[0], pipes.to_child[1], pipes.from_child[0], pipes.from_child[1]}) {
    if (fd >= 0) close(fd);
  }
}

// Only what may be called between fork and exec.
[[noreturn]] void become(const char* program, char* const* words, char* const* environment,
                         const Pipes& pipes, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  signal(SIGPIPE, SIG_DFL);
  const int null = open("/dev/null", O_RDWR);
  const bool piped = pipes.from_child[1] >= 0;
  dup2(pipes.to_child[0] >= 0 ? pipes.to_child[0] : null, STDIN_FILENO);
  dup2(piped ? pipes.from_child[1] : null, STDOUT_FILENO);
  dup2(piped ? pipes.from_child[1] : null, STDERR_FILENO);
  execve(program, words, environment);
  _exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words)
    result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry)
    all.emplace_back(*entry);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// Appends what there is; false at the end, or when nothing came in time.
bool read_more(int fd, std::string& text, Clock::time_point end) {
  pollfd waited{fd, POLLIN, 0};
  if (poll(&waited, 1, milliseconds_until(end)) <= 0) return false;
  char buffer[65536];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got <= 0) return false;
  text.append(buffer, static_cast<size_t>(got));
  return true;
}

std::string last_part(const std::string& text) {
  return text.size() <= kOutputShown ? text : "..." + text.substr(text.size() - kOutputShown);
}

}  // namespace

std::string own_program(const std::string& name) {
  std::error_code wrong;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", wrong);
  return wrong ? name : (self.parent_path() / name).string();
}

std::string program_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string folders = std::string(path == nullptr ? "" : path) + ":/usr/sbin:/sbin:/usr/bin:/bin";
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    std::string candidate = folders.substr(begin, end - begin) + "/" + name;
    if (end > begin && access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return "";
}

Result<Child, Error> Child::start(const Command& command, bool with_pipes) {
  const std::string program = program_path(command.words.front());
  if (program.empty())
    return Error{Errc::invalid, fmt::format("{} is not installed", command.words.front())};
  Pipes pipes;
  if (with_pipes &&
      (pipe2(pipes.to_child, O_CLOEXEC) != 0 || pipe2(pipes.from_child, O_CLOEXEC) != 0)) {
    close_all(pipes);
    return Error{Errc::no_space, fmt::format("no pipe: {}", std::strerror(errno))};
  }
  const std::vector<std::string> environment = environment_with(command.environment);
  const std::vector<char*> words = pointers(command.words);
  const std::vector<char*> variables = pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(program.c_str(), words.data(), variables.data(), pipes, parent);
  if (pid < 0) {
    const Error error{Errc::no_space,
                      fmt::format("cannot start {}: {}", program, std::strerror(errno))};
    close_all(pipes);
    return error;
  }
  if (with_pipes) {
    close(pipes.to_child[0]);
    close(pipes.from_child[1]);
  }
  return Child(pid, pipes.to_child[1], pipes.from_child[0]);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      read_ahead_(std::move(other.read_ahead_)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  std::swap(read_ahead_, other.read_ahead_);
  return *this;
}

Child::~Child() {
  stop();
}

bool Child::runs() {
  siginfo_t info{};
  return pid_ > 0 &&
         waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

void Child::stop() noexcept {
  if (input_ >= 0) close(std::exchange(input_, -1));
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    const auto end = Clock::now() + kPatience;
    while (runs() && Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  if (output_ >= 0) close(std::exchange(output_, -1));
}

int Child::reap() noexcept {
  int status = 0;
  if (pid_ <= 0 || waitpid(std::exchange(pid_, -1), &status, 0) < 0) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool Child::read_line(std::string& line, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  size_t newline = 0;
  while ((newline = read_ahead_.find('\n')) == std::string::npos) {
    if (!read_more(output_, read_ahead_, end)) return false;
  }
  line = read_ahead_.substr(0, newline);
  read_ahead_.erase(0, newline + 1);
  return true;
}

bool Child::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(input_, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

Result<std::string, Error> run(const Command& command, double seconds_max) {
  auto child = Child::start(command, true);
  if (!child) return child.error();
  std::string output;
  std::string line;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds_max));
  while (child->read_line(line, std::chrono::duration<double>(end - Clock::now()).count()))
    output += line + "\n";
  output += child->rest();
  // It has closed its output, or time is up.
  while (child->runs() && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (child->runs()) {
    return Error{Errc::invalid,
                 fmt::format("{} took longer than {} s", command.words.front(), seconds_max)};
  }
  const int status = child->reap();
  if (status != 0) {
    return Error{Errc::invalid, fmt::format("{} failed (status {}): {}", command.words.front(),
                                            status, last_part(output))};
  }
  return output;
}

uint64_t anonymous_bytes(pid_t pid) {
  std::ifstream rollup(pid == 0 ? "/proc/self/smaps_rollup"
                                : fmt::format("/proc/{}/smaps_rollup", pid));
  std::string line;
  while (std::getline(rollup, line)) {
    if (line.starts_with("Anonymous:")) return std::stoull(line.substr(line.find(':') + 1)) * 1024;
  }
  return 0;
}

}  // namespace tuck::bench

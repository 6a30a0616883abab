#include "frontends/cli/stat.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "frontends/cli/control_client.h"
#include "frontends/cli/exit_status.h"
#include "frontends/cli/log.h"
#include "frontends/cli/stats_text.h"

namespace tuck::cli {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr const char* kClearToEnd = "\033[J";
constexpr const char* kHome = "\033[H";
constexpr const char* kClearLine = "\033[K\n";

Result<Json, Error> ask_stat(const std::string& path) {
  Result<std::string, Error> answer = ask_control(path, R"({"command":"stat"})", kPatience);
  if (!answer) return answer.error();
  Json document = Json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) {
    return Error{Errc::invalid,
                 "control socket '" + path + "': the answer is not JSON; is this tuck's socket?"};
  }
  if (document.contains("error") && document["error"].is_string()) {
    return Error{Errc::invalid, "control socket '" + path +
                                    "': " + printable(document["error"].get<std::string>())};
  }
  return document;
}

int fail(const Error& error) {
  print_error(error.message);
  return kExitFailed;
}

// Output that did not arrive (a full disk, a closed pipe) is a failure of the command.
bool print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return true;
  }
  print_error(std::string("standard output: ") + std::strerror(errno));
  return false;
}

// Over the last screen, each line cleared behind its end, so that nothing flickers.
std::string as_screen(const std::string& text) {
  std::string screen = kHome;
  for (const char letter : text) {
    if (letter == '\n') {
      screen += kClearLine;
    } else {
      screen += letter;
    }
  }
  return screen + kClearToEnd;
}

// Waits a second; returns whether SIGINT or SIGTERM ended the wait.
bool interrupted_within_a_second(const sigset_t& stop) {
  const timespec second{.tv_sec = 1, .tv_nsec = 0};
  return sigtimedwait(&stop, nullptr, &second) > 0;
}

}  // namespace

int run_stat(const StatArguments& arguments) {
  Result<Json, Error> document = ask_stat(arguments.control);
  if (!document) return fail(document.error());
  const std::string text =
      arguments.json ? document->dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                     : render_stat(*document);
  return print(text) ? kExitOk : kExitFailed;
}

int run_top(const TopArguments& arguments) {
  using Clock = std::chrono::steady_clock;
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  Json before;
  Clock::time_point before_time;
  for (uint64_t shown = 0;;) {
    Result<Json, Error> now = ask_stat(arguments.control);
    if (!now) return fail(now.error());
    const Clock::time_point now_time = Clock::now();
    const double seconds = std::chrono::duration<double>(now_time - before_time).count();
    const std::string text = render_top(*now, before, seconds);
    if (!print(terminal ? as_screen(text) : text + "\n")) return kExitFailed;
    ++shown;
    if (shown == arguments.count || interrupted_within_a_second(stop)) return kExitOk;
    before = std::move(*now);
    before_time = now_time;
  }
}

}  // namespace tuck::cli

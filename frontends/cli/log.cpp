#include "frontends/cli/log.h"

#include <pthread.h>
#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

namespace tuck::cli {
namespace {

// JOURNAL_STREAM names the device and inode that the service manager connected to the journal; it
// is inherited by children, so only the comparison with standard error itself says what that is.
bool stderr_is_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat state {};
  if (stream == nullptr || fstat(STDERR_FILENO, &state) != 0) return false;
  return std::to_string(state.st_dev) + ":" + std::to_string(state.st_ino) == stream;
}

// sd-daemon(3): a line that begins with "<N>" has syslog priority N.
class PriorityFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const char* prefix = "<6>";
    if (message.level >= spdlog::level::critical) {
      prefix = "<2>";
    } else if (message.level == spdlog::level::err) {
      prefix = "<3>";
    } else if (message.level == spdlog::level::warn) {
      prefix = "<4>";
    } else if (message.level <= spdlog::level::debug) {
      prefix = "<7>";
    }
    out.append(prefix, prefix + 3);
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

}  // namespace

Status start_log(const std::string& level) {
  spdlog::level::level_enum threshold = spdlog::level::info;
  if (level == "error") {
    threshold = spdlog::level::err;
  } else if (level == "warning") {
    threshold = spdlog::level::warn;
  } else if (level == "debug") {
    threshold = spdlog::level::debug;
  } else if (level != "info") {
    return Error{Errc::invalid,
                 "--log-level: '" + level + "' is not one of error, warning, info, debug"};
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (stderr_is_journal()) {
    formatter->add_flag<PriorityFlag>('*').set_pattern("%*%v");
  } else {
    formatter->set_pattern("%Y-%m-%d %H:%M:%S.%e tuck %l: %v");
  }
  auto logger =
      std::make_shared<spdlog::logger>("tuck", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::move(formatter));
  logger->set_level(threshold);
  spdlog::set_default_logger(std::move(logger));
  return std::nullopt;
}

void write_log_behind() {
  constexpr size_t kLines = 1024;
  const auto direct = spdlog::default_logger();
  spdlog::init_thread_pool(kLines, 1, [] { pthread_setname_np(pthread_self(), "tuck-log"); });
  auto behind = std::make_shared<spdlog::async_logger>(
      "tuck", direct->sinks().begin(), direct->sinks().end(), spdlog::thread_pool(),
      spdlog::async_overflow_policy::overrun_oldest);
  behind->set_level(direct->level());
  spdlog::set_default_logger(std::move(behind));
}

bool finish_log() {
  auto& registry = spdlog::details::registry::instance();
  auto writer = registry.get_tp();
  if (writer == nullptr) return true;
  const auto behind = spdlog::default_logger();
  auto direct =
      std::make_shared<spdlog::logger>("tuck", behind->sinks().begin(), behind->sinks().end());
  direct->set_level(behind->level());
  spdlog::set_default_logger(std::move(direct));
  registry.set_tp(nullptr);
  // The writer's end waits for its thread, which writes what is in the queue first.
  std::promise<void> ended;
  const std::future<void> end = ended.get_future();
  std::thread ending([writer = std::move(writer), ended = std::move(ended)]() mutable {
    writer.reset();
    ended.set_value();
  });
  constexpr std::chrono::seconds kPatience{2};
  if (end.wait_for(kPatience) != std::future_status::ready) {
    ending.detach();
    return false;
  }
  ending.join();
  return true;
}

void print_error(const std::string& what) {
  std::fprintf(stderr, "%stuck: %s\n", stderr_is_journal() ? "<3>" : "", what.c_str());
}

}  // namespace tuck::cli

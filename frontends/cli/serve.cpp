#include "frontends/cli/serve.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "frontends/cli/control_server.h"
#include "frontends/cli/exit_status.h"
#include "frontends/cli/log.h"
#include "frontends/cli/served_pool.h"
#include "frontends/cli/service_manager.h"
#include "frontends/cli/serving_end.h"
#include "frontends/cli/stats_json.h"
#include "frontends/cli/stop_signals.h"
#include "frontends/cli/swap_protection.h"
#include "frontends/cli/version.h"

namespace tuck::cli {
namespace {

using Clock = std::chrono::steady_clock;

nbd::ServerOptions server_options(const ServeSettings& settings, const ServedPool& pool) {
  nbd::ServerOptions options;
  options.exports = pool.nbd_exports();
  options.listen = settings.listen;
  options.workers = settings.workers;
  options.connections_max = settings.connections_max;
  options.keep_buffers = settings.protection != ProtectionMode::off;
  options.poll_time = settings.poll_time;
  set_client_options(settings.clients, options);
  return options;
}

// The figures of a running server; server may be null (--stdio).
Json figures_now(const ServedPool& pool, const nbd::Server* server, Clock::time_point start,
                 const SwapProtection& protection) {
  ServerFigures figures;
  figures.version = kVersion;
  figures.process_id = getpid();
  figures.uptime_s = std::chrono::duration<double>(Clock::now() - start).count();
  figures.exports = pool.exports();
  figures.engine = pool.stats();
  figures.pool = pool.kernel_view();
  figures.process = read_process_figures();
  figures.protections = protection.list();
  if (protection.mode() != ProtectionMode::off) figures.thread_flags = read_thread_flags();
  if (server != nullptr) {
    figures.uris = server->uris();
    figures.server = server->report();
  }
  // No answer rather than a wrong one: the control socket hangs up.
  if (!figures.engine.complete || (figures.server && !figures.server->complete)) {
    throw std::bad_alloc();
  }
  return to_json(figures);
}

// Opens the control socket. One that nobody asked for is done without when it is not to be had, so
// that two servers in one directory work.
Result<std::unique_ptr<ControlServer>, Error> open_control(const ControlSetting& control,
                                                           ControlServer::Answer answer) {
  if (control.path.empty()) return std::unique_ptr<ControlServer>();
  auto opened = ControlServer::open(control.path, std::move(answer));
  if (opened || control.required) return opened;
  spdlog::warn("no control socket, so no tuck stat for this server: {}", opened.error().message);
  return std::unique_ptr<ControlServer>();
}

void log_exports(const ServeSettings& settings) {
  for (const ExportSetting& one : settings.exports) {
    spdlog::info("export '{}': {}, codec {}", one.name, format_size(one.size_bytes),
                 engine::to_string(settings.codec));
  }
}

void log_dropped(const ServedPool& pool) {
  const engine::Stats stats = pool.stats();
  spdlog::info("stopped; {} stored pages ({}) are gone with the process",
               stats.content.pages_stored,
               format_size_rounded(stats.content.pages_stored * kPageSize));
}

// The last step before the first client: everything is resident and locked, or it is not and the
// user hears of it.
Status complete(SwapProtection& protection, ServedPool& pool, const ServeSettings& settings) {
  SwapProtection::Expected expected;
  expected.filled_later = pool.memory_ranges();
  expected.reserve_ready_bytes = pool.stats().ledger.reserve_bytes;
  expected.reserve_wanted_bytes = settings.reserve_bytes;
  expected.connections = settings.connections_max;
  if (settings.protection == ProtectionMode::strict) {
    // Before the background gets its priority.
    auto free = FreeMemory::open();
    if (!free) return free.error();
    expected.refill_share_bytes = free->largest_eighth_bytes();
    pool.take_only_what_is_free(std::move(*free));
  }
  Status missing = protection.complete(expected);
  // A refusal names them by itself.
  if (missing) return missing;
  for (const Protection& one : protection.list()) {
    const auto level = one.holds ? spdlog::level::info : spdlog::level::warn;
    spdlog::log(level, "protection {}: {}: {}", one.name, one.holds ? "holds" : "missing",
                one.detail);
  }
  return missing;
}

int fail(const Error& error) {
  // In this order on standard error.
  if (!finish_log()) _exit(kExitFailed);
  print_error(error.message);
  return kExitFailed;
}

int serve_sockets(ServeSettings settings, const std::vector<int>& inherited, ServedPool& pool,
                  StopSignals& signals, SwapProtection& protection) {
  for (const int fd : inherited) {
    nbd::ListenAddress address;
    address.inherited_fd = fd;
    settings.listen.push_back(std::move(address));
  }
  const Clock::time_point start = Clock::now();
  std::unique_ptr<nbd::Server> server;
  // Opened before the server, so that a path in use is found before anything is served; answered
  // only by wait_for_end(), when the server is there.
  auto control = open_control(settings.control, [&](std::string_view line) {
    return answer_request(line, [&] { return figures_now(pool, server.get(), start, protection); });
  });
  if (!control) return fail(control.error());
  nbd::ServerOptions options = server_options(settings, pool);
  options.ready = [&] { return complete(protection, pool, settings); };
  auto started = nbd::Server::start(std::move(options));
  if (!started) return fail(started.error());
  server = std::move(*started);

  log_exports(settings);
  std::string status = "Serving";
  for (const std::string& uri : server->uris()) {
    spdlog::info("serving at {}", uri);
    status += " " + uri;
  }
  if (*control) spdlog::info("figures: tuck stat --control {}", settings.control.path);
  notify_ready(status);

  std::string reason = wait_for_end(signals, control->get(), -1);
  reason = stay_while_swapped_to(std::move(reason), settings, *server, signals, control->get());
  notify_stopping();
  spdlog::info("{}: stopping, {} connections end", reason, server->report().connections_now);
  server->stop();
  log_dropped(pool);
  return kExitOk;
}

// Standard input and output become the client's alone: nothing that prints by mistake gets between.
Result<std::pair<int, int>, Error> take_standard_streams() {
  const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const FileDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (input < 0 || output < 0 || !null || dup2(null.get(), STDIN_FILENO) < 0 ||
      dup2(null.get(), STDOUT_FILENO) < 0) {
    return Error{
        Errc::invalid,
        std::string("--stdio: standard input and output cannot be taken: ") + std::strerror(errno)};
  }
  return std::pair(input, output);
}

int serve_stdio(const ServeSettings& settings, ServedPool& pool, StopSignals& signals,
                SwapProtection& protection) {
  auto streams = take_standard_streams();
  if (!streams) return fail(streams.error());
  const Clock::time_point start = Clock::now();
  auto control = open_control(settings.control, [&](std::string_view line) {
    return answer_request(line, [&] { return figures_now(pool, nullptr, start, protection); });
  });
  if (!control) return fail(control.error());
  if (Status error = complete(protection, pool, settings)) return fail(*error);
  const FileDescriptor done(eventfd(0, EFD_CLOEXEC));
  if (!done) return fail({Errc::no_space, std::string("eventfd: ") + std::strerror(errno)});

  log_exports(settings);
  Status served;
  std::thread client([&] {
    served =
        nbd::Server::serve_one(server_options(settings, pool), streams->first, streams->second);
    eventfd_write(done.get(), 1);
  });
  notify_ready("Serving one client on standard input and output");
  const std::string reason = wait_for_end(signals, control->get(), done.get());
  if (!reason.empty()) {
    // The client's thread may be inside a read that only the client can end. Nothing outlives the
    // process but the control socket's file, so the process ends here.
    notify_stopping();
    spdlog::info("{}: stopping, the client on standard input and output is cut off", reason);
    log_dropped(pool);
    control->reset();
    static_cast<void>(finish_log());
    _exit(kExitOk);
  }
  client.join();
  if (served) return fail(*served);
  log_dropped(pool);
  return kExitOk;
}

}  // namespace

int run_serve(const ServeArguments& arguments) {
  if (Status wrong = start_log(arguments.log_level)) {
    print_error(wrong->message);
    return kExitUsage;
  }
  auto inherited = take_inherited_sockets();
  if (!inherited) return fail(inherited.error());
  auto settings = check_serve(arguments, static_cast<int>(inherited->size()));
  if (!settings) {
    print_error(settings.error().message);
    return kExitUsage;
  }
  auto signals = StopSignals::take();
  if (!signals) return fail(signals.error());
  // Before there are threads and memory, which take over what is set here.
  SwapProtection protection(settings->protection);
  protection.claim();
  write_log_behind();
  const int status = [&] {
    auto pool = ServedPool::create(*settings);
    if (!pool) return fail(pool.error());
    if (settings->stdio) return serve_stdio(*settings, **pool, *signals, protection);
    return serve_sockets(std::move(*settings), *inherited, **pool, *signals, protection);
  }();
  if (!finish_log()) _exit(status);
  return status;
}

}  // namespace tuck::cli

// The `tuck` command: what it was told goes to one of its subcommands.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "frontends/cli/exit_status.h"
#include "frontends/cli/log.h"
#include "frontends/cli/serve.h"
#include "frontends/cli/stat.h"
#include "frontends/cli/version.h"

namespace tuck::cli {
namespace {

// An option with one value; given again, the last one counts, so that scripts can add to a line.
template <class T>
CLI::Option* add_single(CLI::App& command, const char* name, T& value, const std::string& help,
                        const char* type) {
  return command.add_option(name, value, help)->type_name(type)->take_last();
}

// An option that may be repeated, with one value each time.
void add_repeated(CLI::App& command, const char* name, std::vector<std::string>& values,
                  const std::string& help, const char* type) {
  command.add_option(name, values, help)->type_name(type)->allow_extra_args(false);
}

void add_serve_options(CLI::App& serve, ServeArguments& arguments) {
  add_repeated(serve, "--unix", arguments.unix_paths, "Listen on a Unix socket; may be repeated",
               "PATH");
  add_repeated(serve, "--listen", arguments.tcp_addresses,
               "Listen on a loopback address; may be repeated", "HOST:PORT");
  serve.add_flag("--stdio", arguments.stdio, "Serve one client on standard input and output");
  add_single(serve, "--size", arguments.size, "Size of the disk, as in 512M or 4G", "SIZE");
  add_repeated(serve, "--export", arguments.exports,
               "Serve a disk of this name; may be repeated; all share one pool", "NAME[:SIZE]");
  add_single(serve, "--codec", arguments.codec, "none, lz4, lz4:ACCELERATION, zstd or zstd:LEVEL",
             "CODEC")
      ->capture_default_str();
  add_single(serve, "--memory-limit", arguments.memory_limit,
             "Refuse writes when compressed pages would take more memory than this", "SIZE");
  serve.add_flag(
      "--swap", arguments.swap,
      "For the machine that swaps onto this disk: lock all memory, keep a reserve, never "
      "wait for memory; refuse to serve where a protection is not to be had");
  serve.add_flag("--lock-memory", arguments.lock_memory,
                 "The protections of --swap as far as they can be had");
  add_single(serve, "--reserve", arguments.reserve,
             "Memory kept ready for writes [2M; 16M with --swap]", "SIZE");
  add_single(serve, "--workers", arguments.workers, "Worker threads; 0: one a processor, at most 4",
             "N")
      ->capture_default_str();
  add_single(serve, "--connections", arguments.connections,
             "Clients at once [128; 16 with --lock-memory, 4 with --swap]", "N")
      ->check(CLI::PositiveNumber);
  add_client_options(serve, arguments.clients);
  serve
      .add_option("--poll", arguments.poll_us,
                  "Microseconds that a worker polls before it sleeps; 0: none [50; 0 with --swap]")
      ->type_name("US")
      ->take_last();
  add_single(serve, "--control", arguments.control,
             std::string("Socket for tuck stat and tuck top; none: no socket [") +
                 kDefaultControlPath + "]",
             "PATH");
  add_single(serve, "--log-level", arguments.log_level, "error, warning, info or debug", "LEVEL")
      ->capture_default_str();
}

void add_control_option(CLI::App& command, std::string& path) {
  path = kDefaultControlPath;
  add_single(command, "--control", path, "The server's control socket", "PATH")
      ->capture_default_str();
}

// CLI11's words for what was wrong, as one line that says what to do.
int report_usage(const CLI::App& app, const CLI::ParseError& error, const char* first) {
  std::string command = "tuck";
  for (const CLI::App* chosen : app.get_subcommands())
    command += " " + chosen->get_name();
  std::string what = error.what();
  // CLI11 misses the subcommand before it looks at what stands in its place.
  if (app.get_subcommands().empty() && first != nullptr && first[0] != '-') {
    what = "'" + std::string(first) + "' is not a command";
  }
  for (char& letter : what) {
    if (letter == '\n') letter = ' ';
  }
  print_error(what + "; see " + command + " --help");
  return kExitUsage;
}

// A standard descriptor that is closed would be given to the next file or socket that is opened,
// and what is printed would go into it.
bool fill_standard_descriptors() {
  for (;;) {
    const int fd = open("/dev/null", O_RDWR);
    if (fd < 0) return false;
    if (fd > STDERR_FILENO) {
      close(fd);
      return true;
    }
  }
}

int run(int argc, const char* const* argv) {
  CLI::App app("Memory pages kept compressed: a swap device and disk made of memory");
  app.name("tuck");
  app.set_version_flag("--version", std::string("tuck ") + kVersion);
  app.require_subcommand(1);

  ServeArguments serve_arguments;
  CLI::App* const serve = app.add_subcommand("serve", "Serve compressed memory as NBD disks");
  add_serve_options(*serve, serve_arguments);

  StatArguments stat_arguments;
  CLI::App* const stat = app.add_subcommand("stat", "Show a running server's figures");
  add_control_option(*stat, stat_arguments.control);
  stat->add_flag("--json", stat_arguments.json, "As JSON; docs/stat.md says what each key means");

  TopArguments top_arguments;
  CLI::App* const top = app.add_subcommand("top", "Show a running server's figures every second");
  add_control_option(*top, top_arguments.control);
  add_single(*top, "--count", top_arguments.count,
             "End after this many screens; 0: when interrupted", "N");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help and --version, which print and end well
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, argc > 1 ? argv[1] : nullptr);
  }
  if (serve->parsed()) return run_serve(serve_arguments);
  if (stat->parsed()) return run_stat(stat_arguments);
  return run_top(top_arguments);
}

}  // namespace
}  // namespace tuck::cli

int main(int argc, char** argv) {
  if (!tuck::cli::fill_standard_descriptors()) {
    tuck::cli::print_error(std::string("cannot open /dev/null: ") + std::strerror(errno));
    return tuck::cli::kExitFailed;
  }
  try {
    return tuck::cli::run(argc, argv);
  } catch (const std::exception& error) {  // the libraries' own: no memory while starting
    tuck::cli::print_error(error.what());
    return tuck::cli::kExitFailed;
  }
}

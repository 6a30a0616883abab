// The `tuck-bench` command: one table a run, as text or as JSON.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "bench/frame/frame.h"
#include "bench/frame/machine.h"

namespace tuck::bench {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct Arguments {
  std::string table;
  bool json = false;
  Options options;
};

std::string tables_help() {
  std::string text = "Tables:\n";
  for (const TableEntry* entry : tables())
    text += fmt::format("  {:<10} {}\n", entry->name(), entry->what());
  return text;
}

void add_arguments(CLI::App& app, Arguments& arguments) {
  Options& options = arguments.options;
  app.add_option("table", arguments.table, "What to measure, see below")->required();
  app.add_flag("--json", arguments.json, "One JSON object instead of text");
  app.add_option("--corpus", options.pages.files,
                 "Files of raw pages [captured by tools/corpus, and kept]");
  app.add_flag("--synthetic", options.pages.synthetic, "Generated pages instead of real ones");
  app.add_option("--seconds", options.seconds, "How long each figure is measured, each round")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Rounds that count")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads, at most, where a table varies them")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  app.add_flag("!--no-peers", options.peers, "tuck alone");
  app.footer(tables_help());
}

int fail(const std::string& message) {
  fmt::print(stderr, "tuck-bench: {}\n", message);
  return kExitFailed;
}

int measure(const Arguments& arguments, const TableEntry& table) {
  const auto pages = Pages::get(arguments.options.pages);
  if (!pages) return fail(pages.error().message);
  Report report;
  {
    Progress progress(arguments.table, true);
    Context context(arguments.options, *pages, progress);
    if (const std::string busy = machine_warning(); !busy.empty()) context.report().warn(busy);
    if (const Status wrong = table.run(context)) return fail(wrong->message);
    report = std::move(context.report());
  }
  const Options& options = arguments.options;
  const Setting setting{arguments.table, pages->origin(), pages->synthetic(),
                        options.rounds,  options.seconds, options.threads};
  const std::string text = arguments.json ? to_json(report, setting) : to_text(report, setting);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    return fail("cannot write the report to standard output");
  return 0;
}

int bench_main(int argc, char** argv) {
  CLI::App app("Measures tuck beside its peers, on the same pages, in the same run.", "tuck-bench");
  Arguments arguments;
  add_arguments(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const TableEntry* const table = find_table(arguments.table);
  if (table == nullptr) {
    fmt::print(stderr, "tuck-bench: there is no table {}\n{}", arguments.table, tables_help());
    return kExitUsage;
  }
  if (const Status wrong = supervise()) return fail(wrong->message);
  return measure(arguments, *table);
}

}  // namespace
}  // namespace tuck::bench

int main(int argc, char** argv) {
  try {
    return tuck::bench::bench_main(argc, argv);
  } catch (const std::exception& error) {
    return tuck::bench::fail(error.what());
  }
}

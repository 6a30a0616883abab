// tuck-corpus: makes and describes page corpora.

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/base.h"
#include "bench/corpus/corpus.h"

namespace tuck::corpus {

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

// Set by SIGINT, SIGTERM and SIGHUP: the process under capture must run again before we end.
std::atomic<bool> interrupted{false};

int complain(const Error& error) {
  fmt::print(stderr, "tuck-corpus: {}\n", error.message);
  return kFailure;
}

void notice_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted.store(true, std::memory_order_relaxed); };
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaction(signal, &action, nullptr);
  // A write beyond the limit of file sizes is an error like any other.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
}

struct CaptureArguments {
  pid_t pid = 0;
  bool no_stop = false;
  std::string file;
};

int run_capture(const CaptureArguments& arguments) {
  notice_signals();
  auto out = PageFileWriter::create(arguments.file);
  if (!out) return complain(out.error());
  const CaptureOptions options{.stop = !arguments.no_stop, .cancelled = &interrupted};
  auto report = capture(arguments.pid, *out, options);
  if (!report) return complain(report.error());
  if (report->pages == 0) {
    return complain({Errc::invalid, fmt::format("process {} has no private anonymous pages that "
                                                "can be read ({} could not)",
                                                arguments.pid, report->unreadable)});
  }
  if (Status status = out->finish()) return complain(*status);
  fmt::print("{}: {} pages ({}) of {} mappings, {} unreadable\n", arguments.file, report->pages,
             format_size_rounded(report->pages * kPageSize), report->mappings, report->unreadable);
  return 0;
}

struct SyntheticArguments {
  uint64_t pages = 0;
  uint64_t seed = 1;
  std::string file;
};

int run_synthetic(const SyntheticArguments& arguments) {
  notice_signals();
  auto out = PageFileWriter::create(arguments.file);
  if (!out) return complain(out.error());
  const SyntheticPages generator(arguments.seed);
  std::array<std::byte, kPageSize> page;
  for (uint64_t i = 0; i < arguments.pages; ++i) {
    if (interrupted.load(std::memory_order_relaxed)) {
      return complain({Errc::shutting_down, "interrupted"});
    }
    generator.fill(i, page);
    if (Status status = out->append(page)) return complain(*status);
  }
  if (Status status = out->finish()) return complain(*status);
  fmt::print("{}: {} synthetic pages ({}), seed {}\n", arguments.file, arguments.pages,
             format_size_rounded(arguments.pages * kPageSize), arguments.seed);
  return 0;
}

void print_header() {
  fmt::print(
      "{:<14} {:>8} {:>6} {:>6} {:>7}  {:>6} {:>5} {:>5} {:>5}  {:>5} {:>5} {:>5}  {:>5} "
      "{:>5} {:>5}\n",
      "corpus", "pages", "zero%", "same%", "incomp%", "lz4 B", "p25", "p50", "p75", "lz4", "16K",
      "gain%", "zstd", "16K", "gain%");
}

void print_row(const std::string& name, const Statistics& s) {
  fmt::print(
      "{:<14} {:>8} {:>6.1f} {:>6.1f} {:>7.1f}  {:>6.0f} {:>5} {:>5} {:>5}  {:>5.2f} "
      "{:>5.2f} {:>5.1f}  {:>5.2f} {:>5.2f} {:>5.1f}\n",
      name, s.pages, 100 * s.share(s.zero), 100 * s.share(s.same_filled),
      100 * s.share(s.incompressible), s.lz4_4k_mean(), s.lz4_4k_quantile(0.25),
      s.lz4_4k_quantile(0.5), s.lz4_4k_quantile(0.75), s.ratio(s.lz4_4k_bytes),
      s.ratio(s.lz4_16k_bytes), 100 * s.lz4_gain_16k(), s.ratio(s.zstd_4k_bytes),
      s.ratio(s.zstd_16k_bytes), 100 * s.zstd_gain_16k());
}

void print_histogram(const Statistics& s) {
  fmt::print("  % of pages by lz4 size up to:");
  for (uint32_t i = 1; i < s.lz4_4k_histogram.size(); ++i) {
    const double share =
        static_cast<double>(s.lz4_4k_histogram[i]) / static_cast<double>(s.compressed_pages());
    fmt::print(" {}:{:.1f}", i * Statistics::kHistogramStep, 100 * share);
  }
  fmt::print("\n");
}

int run_info(const std::vector<std::string>& files, bool histogram) {
  fmt::print(
      "zero, same-filled (zero ones among them), incompressible: % of all pages. lz4 and "
      "zstd -1: the other\npages; mean and quartiles of lz4 bytes a page, then ratio in 4 "
      "and 16 KiB units and what 16 KiB saves.\n");
  print_header();
  Statistics total;
  for (const std::string& file : files) {
    auto pages = PageFile::open(file);
    if (!pages) return complain(pages.error());
    const Statistics statistics = measure(pages->bytes());
    print_row(std::filesystem::path(file).stem().string(), statistics);
    if (histogram) print_histogram(statistics);
    total.add(statistics);
  }
  if (files.size() > 1) {
    print_row("all", total);
    if (histogram) print_histogram(total);
  }
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("Makes and describes corpora of raw 4 KiB pages.", "tuck-corpus");
  app.require_subcommand(1);

  CaptureArguments capture_arguments;
  auto* capture_command =
      app.add_subcommand("capture", "Copy the private anonymous pages of a running process");
  capture_command->add_option("--pid", capture_arguments.pid, "The process")->required();
  capture_command->add_flag("--no-stop", capture_arguments.no_stop,
                            "Let the process run meanwhile; its pages are then of many moments");
  capture_command->add_option("FILE", capture_arguments.file, "The corpus to write")->required();

  SyntheticArguments synthetic_arguments;
  auto* synthetic_command =
      app.add_subcommand("synthetic", "Generate pages with the statistics of real ones");
  synthetic_command->add_option("--pages", synthetic_arguments.pages, "How many")
      ->required()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32));
  synthetic_command->add_option("--seed", synthetic_arguments.seed, "Same seed, same pages (1)");
  synthetic_command->add_option("FILE", synthetic_arguments.file, "The corpus to write")
      ->required();

  std::vector<std::string> files;
  bool histogram = false;
  auto* info_command = app.add_subcommand("info", "Say what the pages of corpora are like");
  info_command->add_flag("--histogram", histogram, "Print the distribution of lz4 sizes, too");
  info_command->add_option("FILE", files, "Corpora")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (capture_command->parsed()) return run_capture(capture_arguments);
  if (synthetic_command->parsed()) return run_synthetic(synthetic_arguments);
  return run_info(files, histogram);
}

}  // namespace

}  // namespace tuck::corpus

int main(int argc, char** argv) {
  return tuck::corpus::run(argc, argv);
}

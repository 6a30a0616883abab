// The `tuck-micro` command: what small pieces of tuck cost.
//
//   tuck-micro [--benchmark_…]          times, by Google Benchmark
//   tuck-micro --counted                names of the operations whose instructions are worth
//   counting tuck-micro --count NAME [prepare]   does one of them once, for a program that counts
//   instructions;
//                                       with `prepare` all but the operations themselves. Prints
//                                       how many they are
//
// The difference of two counts is then the operations' own, whatever starting and preparing took
// (tools/micro --instructions does that).
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <lz4.h>
#include <sched.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "bench/micro/operation.h"

namespace tuck::bench::micro {

namespace {

// As pages 256 MiB: more than caches hold.
constexpr uint64_t kEntries = 65536;
// Instructions are the same whatever caches hold, and counting them takes its time.
constexpr uint64_t kEntriesCounted = 8192;

std::vector<Operation> all_operations() {
  std::vector<Operation> all;
  for (auto* operations :
       {allocator_operations, engine_operations, same_filled_operations, request_operations}) {
    for (Operation& operation : operations())
      all.push_back(std::move(operation));
  }
  return all;
}

// Google Benchmark calls this several times for one operation, to find how often to do it; what was
// made for the first call serves the others.
[[maybe_unused]] void measure(benchmark::State& state, const Operation& operation) {
  static std::string made_for;
  static std::unique_ptr<Work> work;
  if (made_for != operation.name) {
    work.reset();
    work = operation.make(kEntries);
    made_for = operation.name;
  }
  while (state.KeepRunningBatch(operation.batch)) {
    state.PauseTiming();
    work->prepare();
    state.ResumeTiming();
    work->run();
  }
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(operation.pages);
}

// operation lives as long as the program. The library owns what it is handed here, which clang's
// analyser calls a leak.
void announce([[maybe_unused]] const Operation& operation) {
#ifndef __clang_analyzer__
  // Of time on the clock. What is prepared takes up to ten times as long as what is timed.
  constexpr double kSecondsMin = 0.2;
  benchmark::RegisterBenchmark(operation.name.c_str(), [&operation](benchmark::State& state) {
    measure(state, operation);
  })->MinTime(kSecondsMin);
#endif
}

int measure_all(int argc, char** argv) {
  const std::vector<Operation> operations = all_operations();
  for (const Operation& operation : operations)
    announce(operation);
  benchmark::AddCustomContext("lz4", LZ4_versionString());
  benchmark::AddCustomContext("zstd", ZSTD_versionString());
  benchmark::AddCustomContext("pages", "SYNTHETIC");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

int list_counted() {
  for (const Operation& operation : all_operations()) {
    if (operation.counted) fmt::print("{}\n", operation.name);
  }
  return 0;
}

// On one processor to the end: codec contexts, and what waits to be freed, are kept by processor.
void stay_here() {
  const int here = sched_getcpu();
  if (here < 0) return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<size_t>(here), &only);
  sched_setaffinity(0, sizeof only, &only);
}

// The rounds before leave the heap, the pool and the tables as they stay from then on.
int count(std::string_view name, bool only_prepare) {
  for (const Operation& operation : all_operations()) {
    if (operation.name != name) continue;
    stay_here();
    const auto work = operation.make(kEntriesCounted);
    for (uint64_t done = 0; done < kEntriesCounted; done += operation.batch) {
      work->prepare();
      work->run();
    }
    fmt::print("{}\n", operation.batch);
    std::fflush(stdout);
    work->prepare();
    if (!only_prepare) work->run();
    // At once: taking down what was made is other work with the operations than without.
    _exit(0);
  }
  fmt::print(stderr, "tuck-micro: there is no operation {}\n", name);
  return 2;
}

int run(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--counted") return list_counted();
  if (mode == "--count" && argc > 2) {
    return count(argv[2], argc > 3 && std::string_view(argv[3]) == "prepare");
  }
  return measure_all(argc, argv);
}

}  // namespace

}  // namespace tuck::bench::micro

int main(int argc, char** argv) {
  try {
    return tuck::bench::micro::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tuck-micro: {}\n", error.what());
    return 1;
  }
}

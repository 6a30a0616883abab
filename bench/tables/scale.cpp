// scale: stores and loads a second with more and more threads, beside the codec alone, whose
// threads share nothing at all: what they lose to each other is the machine's doing.
//
// All threads work on one area of one engine, each on its own part of it, over and over until the
// time is up.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>

#include "bench/frame/frame.h"
#include "bench/tables/codec_pair.h"

namespace tuck::bench {

namespace {

constexpr const char* kCodec = "lz4";
constexpr size_t kBatch = 64;  // pages between two looks at the clock

struct Work {
  std::string name;  // of the figure: "store", "load"
  // Pages first … first + count by thread number t. false: it failed.
  std::function<bool(unsigned t, size_t first, size_t count)> pages;
};

// One thread's part, over and over until the end; adds what it did.
void loop(const Work& work, unsigned thread, size_t first, size_t size, uint64_t end_ns,
          std::atomic<uint64_t>& done, std::atomic<bool>& failed) {
  uint64_t mine = 0;
  for (size_t at = 0; now_ns() < end_ns; at = at + kBatch < size ? at + kBatch : 0) {
    const size_t count = std::min(kBatch, size - at);
    if (!work.pages(thread, first + at, count)) failed.store(true, std::memory_order_relaxed);
    mine += count;
  }
  done.fetch_add(mine, std::memory_order_relaxed);
}

// Pages a second of all threads together.
Result<double, Error> rate(const Work& work, unsigned threads, size_t pages, double seconds) {
  std::atomic<uint64_t> done{0};
  std::atomic<bool> failed{false};
  std::latch start(threads + 1);
  std::atomic<uint64_t> end_ns{0};
  std::vector<std::thread> running;
  const size_t part = pages / threads;
  for (unsigned t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      start.arrive_and_wait();
      // relaxed: the latch orders it.
      loop(work, t, t * part, part, end_ns.load(std::memory_order_relaxed), done, failed);
    });
  }
  const auto length = static_cast<uint64_t>(seconds * 1e9);
  end_ns.store(now_ns() + length, std::memory_order_relaxed);
  const Stopwatch watch;
  start.arrive_and_wait();
  for (std::thread& thread : running)
    thread.join();
  if (failed.load(std::memory_order_relaxed))
    return Error{Errc::no_space, "a page was refused: is there memory for the corpus?"};
  return static_cast<double>(done.load(std::memory_order_relaxed)) / watch.seconds();
}

std::vector<unsigned> thread_counts(unsigned most) {
  std::vector<unsigned> counts;
  for (unsigned count = 1; count < most; count *= 2)
    counts.push_back(count);
  counts.push_back(most);
  return counts;
}

std::string figure(const std::string& op, unsigned threads) {
  return fmt::format("{} {}", op, threads);
}

// Every count of threads, one after the other, so that a round's counts can be compared.
Result<Figures, Error> turn(const std::vector<Work>& works, const Options& options, size_t pages) {
  Figures figures;
  for (const Work& work : works) {
    for (const unsigned threads : thread_counts(options.threads)) {
      const auto pages_a_second = rate(work, threads, pages, options.seconds);
      if (!pages_a_second) return pages_a_second.error();
      figures[figure(work.name, threads)] = *pages_a_second;
    }
  }
  return figures;
}

struct alignas(kPageSize) PageBuffer {
  std::byte bytes[kPageSize];
};

std::vector<Work> engine_work(EngineUnderTest& engine, const PageList& pages,
                              std::vector<PageBuffer>& buffers) {
  return {{"store",
           [&](unsigned, size_t first, size_t count) { return engine.store(pages, first, count); }},
          {"load", [&](unsigned t, size_t first, size_t count) {
             return engine.load(first, count, buffers[t].bytes);
           }}};
}

std::vector<Work> bare_work(std::vector<std::unique_ptr<BareStore>>& bare,
                            std::vector<PageBuffer>& buffers) {
  return {{"store",
           [&](unsigned t, size_t first, size_t count) {
             bare[t]->compress(first, count);
             return true;
           }},
          {"load", [&](unsigned t, size_t first, size_t count) {
             bare[t]->decompress(first, count, buffers[t].bytes);
             return true;
           }}};
}

void add_rows(Report& report, const Measured& measured, const std::string& subject,
              const Options& options) {
  for (const char* op : {"store", "load"}) {
    for (const unsigned threads : thread_counts(options.threads)) {
      Row row;
      row.add("subject", subject).add("op", op).add("threads", int64_t{threads});
      row.add_with_spread("ops_per_s", measured.get(subject, figure(op, threads)));
      row.add("speedup", ratio(measured.get(subject, figure(op, threads)),
                               measured.get(subject, figure(op, 1))));
      report.add(std::move(row));
    }
  }
}

void summarize(Report& report, const Measured& measured) {
  for (const std::string op : {"store", "load"}) {
    const auto speedup = [&](const char* subject) {
      return ratio(measured.get(subject, figure(op, 2)), measured.get(subject, figure(op, 1)));
    };
    report.summarize(op + "_speedup_2", speedup("tuck"));
    report.summarize("bare_" + op + "_speedup_2", speedup("bare"));
    report.summarize(op + "_speedup_2_over_bare", ratio(speedup("tuck"), speedup("bare")),
                     at_least(0.97));
  }
}

Status run(Context& context) {
  const Options& options = context.options();
  const PageList pages = context.pages().pages_to_compress();
  if (pages.size() < options.threads) return Error{Errc::invalid, "more threads than pages"};
  auto engine = EngineUnderTest::create(kCodec, pages.size());
  if (!engine) return engine.error();
  if (!engine->store(pages, 0, pages.size()))
    return Error{Errc::no_space, "no memory for the corpus: give fewer pages with --corpus"};
  std::vector<std::unique_ptr<BareStore>> bare;
  for (unsigned t = 0; t < options.threads; ++t) {
    auto codec = bare_codec(kCodec);
    if (!codec) return codec.error();
    bare.push_back(std::make_unique<BareStore>(std::move(*codec), pages));
  }
  std::vector<PageBuffer> buffers(options.threads);
  const auto measured = run_rounds(
      context,
      {{"tuck", [&] { return turn(engine_work(*engine, pages, buffers), options, pages.size()); },
        true},
       {"bare", [&] { return turn(bare_work(bare, buffers), options, pages.size()); }, true}});
  if (!measured) return measured.error();
  add_rows(context.report(), *measured, "tuck", options);
  add_rows(context.report(), *measured, "bare", options);
  summarize(context.report(), *measured);
  context.report().note("lz4, 4 KiB units, one call a page; threads share an area, not its pages");
  return {};
}

const TableEntry entry{"scale", "stores and loads with more and more threads", run};

}  // namespace

}  // namespace tuck::bench

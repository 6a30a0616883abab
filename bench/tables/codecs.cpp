// codecs: what a page costs in the engine, beside its codec alone on the same pages.
//
// The two take turns every 1,024 pages (4 MiB), each at another place of the pages, so that neither
// finds what the other has just read, and whatever slows the machine slows both. Stores are over
// pages that are stored already, as in a swap device that has been in use for a while.
#include <fmt/format.h>

#include <algorithm>

#include "bench/frame/frame.h"
#include "bench/tables/codec_pair.h"
#include "bench/tables/codecs_zram.h"

namespace tuck::bench {

namespace {

constexpr size_t kTurnPages = 1024;
constexpr const char* kCodecs[] = {"lz4", "zstd:-1"};

struct Times {
  uint64_t bare_ns = 0;
  uint64_t engine_ns = 0;
  uint64_t pages = 0;
};

// A corpus's pages without the same-filled ones: no codec works on those.
PageList pages_of(const NamedPages& corpus) {
  PageList pages;
  for (uint64_t i = 0; i < corpus.pages(); ++i) {
    if (!corpus::is_same_filled(std::span<const std::byte, kPageSize>(corpus.page(i), kPageSize)))
      pages.push_back(corpus.page(i));
  }
  return pages;
}

// One codec on one corpus.
class Pair {
 public:
  static Result<std::unique_ptr<Pair>, Error> create(const std::string& codec, PageList pages) {
    auto bare = bare_codec(codec);
    if (!bare) return bare.error();
    auto engine = EngineUnderTest::create(codec, pages.size());
    if (!engine) return engine.error();
    auto pair =
        std::unique_ptr<Pair>(new Pair(std::move(pages), std::move(*bare), std::move(*engine)));
    if (!pair->engine_.store(pair->pages_, 0, pair->pages_.size())) return pair->refused();
    return pair;
  }

  Result<Figures, Error> turn(double seconds) {
    Times store;
    Times load;
    const Stopwatch watch;
    do {
      if (!pass(store, load)) return refused();
    } while (watch.seconds() < seconds);
    Figures figures;
    add(figures, "store", store);
    add(figures, "load", load);
    add_tails(figures);
    return figures;
  }

  double ratio() const {
    const auto content = engine_.engine->stats().content;
    return static_cast<double>(pages_.size() * kPageSize) /
           static_cast<double>(content.bytes_compressed);
  }
  double bare_ratio() const {
    return static_cast<double>(pages_.size() * kPageSize) / static_cast<double>(bare_.bytes());
  }

 private:
  Pair(PageList pages, std::unique_ptr<BareCodec> bare, EngineUnderTest engine)
      : pages_(std::move(pages)), bare_(std::move(bare), pages_), engine_(std::move(engine)) {}

  static Error refused() {
    return Error{Errc::no_space, "the engine refused a page: is there memory for the corpus?"};
  }

  bool pass(Times& store, Times& load) noexcept {
    const size_t size = pages_.size();
    const size_t apart = size / 2 / kTurnPages * kTurnPages;
    bool well = true;
    for (size_t at = 0; at < size; at += kTurnPages) {
      const size_t other = (at + apart) % size / kTurnPages * kTurnPages;
      const size_t count = std::min(kTurnPages, size - at);
      const size_t other_count = std::min(count, size - other);
      if (other_count != count) continue;  // the last, shorter piece has no partner
      Stopwatch watch;
      well = engine_.store(pages_, at, count) && well;
      store.engine_ns += watch.ns();
      watch = Stopwatch();
      bare_.compress(other, count);
      store.bare_ns += watch.ns();
      watch = Stopwatch();
      well = engine_.load(other, count, page_) && well;
      load.engine_ns += watch.ns();
      watch = Stopwatch();
      bare_.decompress(at, count, page_);
      load.bare_ns += watch.ns();
      store.pages += count;
      load.pages += count;
    }
    return well;
  }

  static void add(Figures& figures, const std::string& what, const Times& times) {
    if (times.pages == 0) return;
    const double pages = static_cast<double>(times.pages) * 1000;
    figures[what + "_us"] = static_cast<double>(times.engine_ns) / pages;
    figures["bare_" + what + "_us"] = static_cast<double>(times.bare_ns) / pages;
  }

  // Page by page, with a look at the clock (some 25 ns) around each: apart from the means above.
  void add_tails(Figures& figures) {
    auto stores = std::make_unique<LatencyHistogram>();
    auto loads = std::make_unique<LatencyHistogram>();
    const size_t count = std::min<size_t>(pages_.size(), 16 * kTurnPages);
    for (size_t i = 0; i < count; ++i) {
      Stopwatch watch;
      engine_.store(pages_, i, 1);
      stores->record(watch.ns());
    }
    for (size_t i = 0; i < count; ++i) {
      Stopwatch watch;
      engine_.load(i, 1, page_);
      loads->record(watch.ns());
    }
    figures["store_p99_us"] = p99_us(*stores);
    figures["load_p99_us"] = p99_us(*loads);
  }

  static double p99_us(const LatencyHistogram& histogram) {
    HistogramSnapshot snapshot;
    histogram.add_to(snapshot);
    return static_cast<double>(snapshot.percentile(0.99)) / 1000;
  }

  PageList pages_;
  BareStore bare_;
  EngineUnderTest engine_;
  alignas(kPageSize) std::byte page_[kPageSize];
};

Row row(const std::string& corpus, const std::string& codec, const char* subject, double ratio) {
  Row row;
  row.add("corpus", corpus).add("codec", codec).add("unit_kib", int64_t{4});
  row.add("subject", subject).add("ratio", ratio);
  return row;
}

void add_rows(Report& report, const Measured& measured, const std::string& name,
              const std::string& corpus, const std::string& codec, const Pair& pair) {
  Row tuck = row(corpus, codec, "tuck", pair.ratio());
  tuck.add("store_us", measured.get(name, "store_us"))
      .add("load_us", measured.get(name, "load_us"));
  tuck.add("store_p99_us", measured.get(name, "store_p99_us"));
  tuck.add("load_p99_us", measured.get(name, "load_p99_us"));
  tuck.add("store_over_bare",
           ratio(measured.get(name, "store_us"), measured.get(name, "bare_store_us")));
  tuck.add("load_over_bare",
           ratio(measured.get(name, "load_us"), measured.get(name, "bare_load_us")));
  report.add(std::move(tuck));
  Row bare = row(corpus, codec, "bare", pair.bare_ratio());
  bare.add("store_us", measured.get(name, "bare_store_us"));
  bare.add("load_us", measured.get(name, "bare_load_us"));
  report.add(std::move(bare));
}

struct Entrant {
  std::string name;
  std::string corpus;
  std::string codec;
  std::unique_ptr<Pair> pair;
};

Status make_entrants(const Context& context, std::vector<Entrant>& entrants) {
  const Pages& pages = context.pages();
  std::vector<NamedPages> corpora{pages.all()};
  if (pages.corpora().size() > 1)
    corpora.insert(corpora.end(), pages.corpora().begin(), pages.corpora().end());
  for (const char* codec : kCodecs) {
    for (const NamedPages& corpus : corpora) {
      auto pair = Pair::create(codec, pages_of(corpus));
      if (!pair) return pair.error();
      entrants.push_back(
          {fmt::format("{} {}", codec, corpus.name), corpus.name, codec, std::move(*pair)});
    }
  }
  return {};
}

void summarize(Report& report, const Measured& measured) {
  const auto over_bare = [&measured](const std::string& name, const std::string& what) {
    return ratio(measured.get(name, what + "_us"), measured.get(name, "bare_" + what + "_us"));
  };
  report.summarize("lz4_4k_store_over_bare", over_bare("lz4 all", "store"), at_most(1.10));
  report.summarize("lz4_4k_load_over_bare", over_bare("lz4 all", "load"), at_most(1.15));
  report.summarize("zstd_4k_store_over_bare", over_bare("zstd:-1 all", "store"));
  report.summarize("zstd_4k_load_over_bare", over_bare("zstd:-1 all", "load"));
}

Status run(Context& context) {
  // First: it starts programs, and a fork would slow stores into what the engines have by then.
  const auto zram = ZramInCodecs::create(context);
  std::vector<Entrant> entrants;
  if (Status wrong = make_entrants(context, entrants)) return wrong;
  // The whole corpus carries the claims and has the time; its parts have one pass each.
  const double seconds = context.options().seconds;
  std::vector<Contestant> contestants;
  for (Entrant& entrant : entrants) {
    Pair* const pair = entrant.pair.get();
    const double time = entrant.corpus == "all" ? seconds : 0;
    contestants.push_back({entrant.name, [pair, time] { return pair->turn(time); }, true});
  }
  if (zram) zram->add_contestants(contestants);
  const auto measured = run_rounds(context, contestants);
  if (!measured) return measured.error();
  for (const Entrant& entrant : entrants)
    add_rows(context.report(), *measured, entrant.name, entrant.corpus, entrant.codec,
             *entrant.pair);
  summarize(context.report(), *measured);
  if (zram) zram->add_results(context.report(), *measured, "lz4 all");
  context.report().note(
      "one thread, one call a page, stores over stored pages; same-filled pages left out");
  return {};
}

const TableEntry entry{"codecs", "a page's store and load beside the codec alone", run};

}  // namespace

}  // namespace tuck::bench

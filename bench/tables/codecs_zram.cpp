#include "bench/tables/codecs_zram.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tuck::bench {

namespace {

constexpr const char* kBlock = "zram";
constexpr size_t kRequestPages = 256;  // 1 MiB
constexpr size_t kTurnPages = 1024;    // as long as tuck's own turns in this table

// One kind of request: reads or writes, of so many pages each.
struct Requests {
  const char* figure;
  bool writes;
  size_t pages_each;
  uint64_t ns = 0;
  uint64_t pages = 0;
  LatencyHistogram latencies;

  Requests(const char* name, bool is_write, size_t pages_a_request)
      : figure(name), writes(is_write), pages_each(pages_a_request) {}

  // Those for pages first … first + count.
  Status make(const ZramDevice& device, const AlignedPages& from, const AlignedPages& to,
              size_t first, size_t count) {
    for (size_t at = first; at < first + count; at += pages_each) {
      const size_t part = std::min(pages_each, first + count - at);
      const Stopwatch watch;
      Status wrong = writes ? device.write(at * kPageSize, from.bytes(at, part))
                            : device.read(at * kPageSize, to.bytes(0, part));
      const uint64_t took = watch.ns();
      if (wrong) return wrong;
      latencies.record(took);
      ns += took;
      pages += part;
    }
    return {};
  }

  void add_to(Figures& figures) const {
    figures[std::string(figure) + "_us"] =
        static_cast<double>(ns) / 1000 / static_cast<double>(pages);
    if (pages_each > 1) return;  // a request's tail says nothing of a page's
    HistogramSnapshot snapshot;
    latencies.add_to(snapshot);
    figures[std::string(figure) + "_p99_us"] =
        static_cast<double>(snapshot.percentile(0.99)) / 1000;
  }
};

void add_block_rows(Report& report, const Measured& measured) {
  for (const std::string size : {"4k", "1m"}) {
    const auto figure = [&](const char* name) { return measured.get(kBlock, size + name); };
    Row block = zram_row("zram " + size, measured.get(kBlock, "ratio"));
    block.add("store_us", figure("_store_us")).add("load_us", figure("_load_us"));
    block.add("store_p99_us", figure("_store_p99_us"));
    block.add("load_p99_us", figure("_load_p99_us"));
    report.add(std::move(block));
  }
}

}  // namespace

std::unique_ptr<ZramInCodecs> ZramInCodecs::create(const Context& context) {
  const auto pages = context.pages().pages_to_compress();
  if (!context.options().peers || pages.empty()) return nullptr;
  return std::unique_ptr<ZramInCodecs>(new ZramInCodecs(pages, context.options().seconds));
}

ZramInCodecs::ZramInCodecs(const std::vector<const std::byte*>& pages, double seconds)
    : seconds_(seconds), pages_(pages), loaded_(kRequestPages), swap_(pages_) {}

void ZramInCodecs::add_contestants(std::vector<Contestant>& contestants) {
  contestants.push_back({kBlock, [this] { return block_turn(); }});
  swap_.add_contestants(contestants);
}

// Filled: what is timed are stores over stored pages, as they are tuck's.
Status ZramInCodecs::open_device() {
  if (device_) return {};
  auto device = ZramDevice::create(kZramAlgorithm, pages_.size() * kPageSize);
  if (!device) return device.error();
  device_.emplace(std::move(*device));
  Requests fill("", true, kRequestPages);
  return fill.make(*device_, pages_, loaded_, 0, pages_.size());
}

// The four kinds of requests take turns as tuck and its codec do, each at another quarter of the
// pages, so that none finds in a cache what the one before it has moved.
Result<Figures, Error> ZramInCodecs::block_turn() {
  if (Status wrong = open_device()) return std::move(*wrong);
  Requests kinds[] = {{"4k_store", true, 1},
                      {"4k_load", false, 1},
                      {"1m_store", true, kRequestPages},
                      {"1m_load", false, kRequestPages}};
  const size_t turns = (pages_.size() + kTurnPages - 1) / kTurnPages;
  const Stopwatch watch;
  do {
    for (size_t turn = 0; turn < turns; ++turn) {
      for (size_t kind = 0; kind < std::size(kinds); ++kind) {
        const size_t first = (turn + kind * turns / std::size(kinds)) % turns * kTurnPages;
        const size_t count = std::min(kTurnPages, pages_.size() - first);
        if (Status wrong = kinds[kind].make(*device_, pages_, loaded_, first, count))
          return std::move(*wrong);
      }
    }
  } while (watch.seconds() < seconds_);
  Figures figures;
  for (const Requests& kind : kinds)
    kind.add_to(figures);
  add_zram_ratio(figures, *device_);
  return figures;
}

void ZramInCodecs::add_results(Report& report, const Measured& measured,
                               const std::string& tuck) const {
  const auto summarize = [&](const std::string& size, const std::string& what, double reach) {
    const std::string figure = what + "_us";
    report.summarize(fmt::format("zram_{}_{}_over_tuck", size, what),
                     ratio(measured.get(kBlock, size + "_" + figure), measured.get(tuck, figure)),
                     at_least(reach));
  };
  if (measured.has(kBlock)) {
    add_block_rows(report, measured);
    report.note("zram: the kernel's lz4, direct I/O, one request at a time; times are a page's");
  }
  summarize("4k", "store", 2.0);
  summarize("4k", "load", 2.0);
  summarize("1m", "store", 1.1);
  summarize("1m", "load", 1.3);
  swap_.add_results(report, measured);
}

}  // namespace tuck::bench

#include "bench/tables/codecs_zram_swap.h"

#include <fmt/format.h>

namespace tuck::bench {

namespace {

constexpr unsigned kFolioKib[] = {4, 64};

std::string name_of(unsigned folio_kib) {
  return fmt::format("zram swap, {} KiB folios", folio_kib);
}

// The answers to one command, however often it was given.
struct Answers {
  uint64_t ns = 0;
  uint64_t bytes = 0;
  uint64_t whole_bytes = 0;

  // Whether there was an answer; else error has why.
  bool take(const Result<SwapAnswer, Error>& answer, unsigned folio_kib, Error& error) {
    if (!answer) {
      error = answer.error();
      return false;
    }
    ns += answer->ns;
    bytes += answer->bytes;
    whole_bytes += answer->folios * folio_kib * 1024;
    return true;
  }
  void add_to(Figures& figures, const std::string& name) const {
    if (bytes < kPageSize) return;
    figures[name + "_us"] =
        static_cast<double>(ns) / 1000 / (static_cast<double>(bytes) / kPageSize);
    figures[name + "_whole"] = static_cast<double>(whole_bytes) / static_cast<double>(bytes);
  }
};

void add_swap_rows(Report& report, const Measured& measured, unsigned folio_kib) {
  const std::string name = name_of(folio_kib);
  Row ordered = zram_row("zram swap", measured.get(name, "ratio"));
  ordered.add("folio_kib", int64_t{folio_kib});
  ordered.add("store_us", measured.get(name, "store_us"));
  ordered.add("load_us", measured.get(name, "load_us"));
  ordered.add("free_us", measured.get(name, "free_us"));
  Row random = zram_row("zram swap random", measured.get(name, "ratio"));
  random.add("folio_kib", int64_t{folio_kib});
  random.add("load_us", measured.get(name, "random_us"));
  if (folio_kib > 4) {
    ordered.add("store_whole", measured.get(name, "store_whole"));
    ordered.add("load_whole", measured.get(name, "load_whole"));
    random.add("load_whole", measured.get(name, "random_whole"));
  }
  report.add(std::move(ordered));
  report.add(std::move(random));
}

}  // namespace

ZramSwapInCodecs::ZramSwapInCodecs(const AlignedPages& pages)
    : pages_(pages), swap_(ZramSwap::create(kZramAlgorithm, pages.size() * kPageSize)) {
  for (const unsigned folio_kib : kFolioKib)
    subjects_.push_back({folio_kib, SwapSubject::start(folio_kib)});
}

void ZramSwapInCodecs::add_contestants(std::vector<Contestant>& contestants) {
  for (Subject& subject : subjects_) {
    contestants.push_back({name_of(subject.folio_kib), [this, &subject] { return turn(subject); }});
  }
}

// Out three times and in twice, then unmapped while it is out.
Result<Figures, Error> ZramSwapInCodecs::turn(Subject& subject) {
  if (!swap_) return swap_.error();
  if (!subject.program) return subject.program.error();
  SwapSubject& program = *subject.program;
  const unsigned folio_kib = subject.folio_kib;
  const auto folios = FolioSize::set(folio_kib);
  if (!folios) return folios.error();
  const auto on = swap_->begin();
  if (!on) return on.error();
  Answers fill;
  Answers store;
  Answers load;
  Answers random;
  Answers unmap;
  Error error;
  Figures figures;
  const bool swapped = fill.take(program.fill(pages_.bytes(0, pages_.size())), folio_kib, error) &&
                       store.take(program.pageout(), folio_kib, error) &&
                       load.take(program.fault_in_order(), folio_kib, error) &&
                       store.take(program.pageout(), folio_kib, error) &&
                       random.take(program.fault_at_random(), folio_kib, error) &&
                       store.take(program.pageout(), folio_kib, error);
  if (!swapped) return error;
  add_zram_ratio(figures, swap_->device());
  if (!unmap.take(program.unmap(), folio_kib, error)) return error;
  store.add_to(figures, "store");
  load.add_to(figures, "load");
  random.add_to(figures, "random");
  unmap.add_to(figures, "free");
  return figures;
}

void ZramSwapInCodecs::add_results(Report& report, const Measured& measured) const {
  bool swapped = false;
  for (const Subject& subject : subjects_) {
    if (!measured.has(name_of(subject.folio_kib))) continue;
    add_swap_rows(report, measured, subject.folio_kib);
    swapped = true;
  }
  if (swapped) {
    report.note(
        "zram swap: page-cluster 0; store is pageout, load a fault, free munmap; whole: the share "
        "that went in whole folios");
  }
}

}  // namespace tuck::bench

// churn: what a full heap still takes when half of its objects, at random, are freed.
//
// Each turn fills a new heap, frees the half that the round's seed stands for (the same one in
// every heap), waits a second and counts. zram is then compacted by hand, for it does not do that
// itself.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "bench/tables/fill.h"

namespace tuck::bench {

namespace {

constexpr auto kByItself = std::chrono::seconds(1);
constexpr const char* kCompacted = "compacted_";
constexpr const char* kRatio = "resident_over_payload";

Result<Figures, Error> heap_turn(const Heap& heap, const FillContent& content, uint64_t seed) {
  auto subject = HeapSubject::start(heap, content.files());
  if (!subject) return subject.error();
  const auto full = subject->fill();
  if (!full) return full.error();
  const auto payload = subject->free_half(seed);
  if (!payload) return payload.error();
  std::this_thread::sleep_for(kByItself);
  Figures figures;
  add_memory(figures, *payload, subject->resident_bytes());
  return figures;
}

Status add_zram_memory(Figures& figures, const ZramDevice& device, const std::string& prefix) {
  const auto memory = device.memory();
  if (!memory) return memory.error();
  add_memory(figures, memory->compr_data_size, memory->mem_used_total, prefix);
  return {};
}

Result<Figures, Error> zram_turn(const FillContent& content, uint64_t seed) {
  const auto device = filled_zram(content);
  if (!device) return device.error();
  for (uint64_t page = 0; page < content.bytes() / kPageSize; ++page) {
    if (!is_freed(seed, page)) continue;
    if (Status wrong = device->discard(page * kPageSize, kPageSize)) return *wrong;
  }
  std::this_thread::sleep_for(kByItself);
  Figures figures;
  if (Status wrong = add_zram_memory(figures, *device, "")) return *wrong;
  if (Status wrong = device->compact()) return *wrong;
  if (Status wrong = add_zram_memory(figures, *device, kCompacted)) return *wrong;
  return figures;
}

void add_row(Report& report, const Measured& measured, const std::string& name,
             const std::string& prefix) {
  if (measured.get(name, prefix + kRatio).empty()) return;
  Row row;
  row.add("subject", prefix.empty() ? name : name + " compacted");
  for (const char* what : {"payload_mb", "resident_mb"})
    row.add(what, measured.get(name, prefix + what));
  row.add_with_spread(kRatio, measured.get(name, prefix + kRatio));
  report.add(std::move(row));
}

void summarize(Report& report, const Measured& measured, const std::vector<Contestant>& contestants,
               bool claims) {
  const std::string after = "_after_half_freed";
  for (const Contestant& contestant : contestants) {
    const bool ours = claims && contestant.name == kTuck;
    report.summarize(summary_name(contestant.name) + after, measured.get(contestant.name, kRatio),
                     ours ? std::optional(at_most(1.10)) : std::nullopt);
  }
  report.summarize("zram_compacted_resident_over_payload" + after,
                   measured.get(kZram, std::string(kCompacted) + kRatio));
}

// A contestant's turns have the seeds 0, 1, … one after the other, as every other's have.
template <class Turn>
auto with_seeds(Turn turn) {
  return [turn, seed = uint64_t{0}]() mutable { return turn(seed++); };
}

Status run(Context& context) {
  const auto content = FillContent::create(context);
  if (!content) return content.error();
  std::vector<Contestant> contestants;
  const auto all = heaps(context.options().peers);
  contestants.reserve(all.size() + 1);
  for (const NamedHeap& one : all) {
    contestants.push_back(
        {one.name, with_seeds([&](uint64_t seed) { return heap_turn(one.heap, *content, seed); }),
         one.heap.is_engine});
  }
  if (context.options().peers) {
    contestants.push_back(
        {kZram, with_seeds([&](uint64_t seed) { return zram_turn(*content, seed); })});
  }
  const auto measured = run_rounds(context, contestants);
  if (!measured) return measured.error();
  for (const Contestant& contestant : contestants) {
    add_row(context.report(), *measured, contestant.name, "");
    add_row(context.report(), *measured, contestant.name, kCompacted);
  }
  summarize(context.report(), *measured, contestants, content->is_whole());
  context.report().note(
      "a random half of the objects is freed, one call each; counted a second later");
  context.report().note("round N frees the half of seed N, in every heap the same one");
  context.report().note("zram: mem_used_total over compr_data_size; its table is in neither");
  return {};
}

const TableEntry entry{"churn", "the same after a random half is freed", run};

}  // namespace

}  // namespace tuck::bench

// density: what a heap full of compressed pages takes, over what is in it.
//
// Each turn fills a new heap in a process of its own, whose anonymous memory the kernel counts;
// zram's is its own count.
#include <fmt/format.h>

#include "bench/tables/fill.h"

namespace tuck::bench {

namespace {

Result<Figures, Error> heap_turn(const Heap& heap, const FillContent& content) {
  auto subject = HeapSubject::start(heap, content.files());
  if (!subject) return subject.error();
  const auto payload = subject->fill();
  if (!payload) return payload.error();
  Figures figures;
  add_memory(figures, *payload, subject->resident_bytes());
  return figures;
}

Result<Figures, Error> zram_turn(const FillContent& content) {
  const auto device = filled_zram(content);
  if (!device) return device.error();
  const auto memory = device->memory();
  if (!memory) return memory.error();
  Figures figures;
  add_memory(figures, memory->compr_data_size, memory->mem_used_total);
  return figures;
}

void add_row(Report& report, const Measured& measured, const std::string& name) {
  if (!measured.has(name)) return;
  Row row;
  row.add("subject", name);
  for (const char* what : {"payload_mb", "resident_mb"})
    row.add(what, measured.get(name, what));
  row.add_with_spread("resident_over_payload", measured.get(name, "resident_over_payload"));
  report.add(std::move(row));
}

void summarize(Report& report, const Measured& measured, const std::vector<Contestant>& contestants,
               bool claims) {
  for (const Contestant& contestant : contestants) {
    std::optional<Target> target;
    if (claims && contestant.name == kTuck) target = at_most(1.03);
    if (claims && contestant.name == kTuckLz4) target = at_most(1.04);
    report.summarize(summary_name(contestant.name),
                     measured.get(contestant.name, "resident_over_payload"), target);
  }
  report.summarize("tuck_bytes_over_zram", measured.ratio(kTuck, kZram, "resident_mb"),
                   claims ? std::optional(at_most(0.60)) : std::nullopt);
}

Status run(Context& context) {
  const auto content = FillContent::create(context);
  if (!content) return content.error();
  std::vector<Contestant> contestants;
  const auto all = heaps(context.options().peers);
  contestants.reserve(all.size() + 1);
  for (const NamedHeap& one : all) {
    contestants.push_back(
        {one.name, [&] { return heap_turn(one.heap, *content); }, one.heap.is_engine});
  }
  if (context.options().peers) contestants.push_back({kZram, [&] { return zram_turn(*content); }});
  const auto measured = run_rounds(context, contestants);
  if (!measured) return measured.error();
  for (const Contestant& contestant : contestants)
    add_row(context.report(), *measured, contestant.name);
  summarize(context.report(), *measured, contestants, content->is_whole());
  context.report().note(
      "resident: anonymous memory of a process, beyond that of the same process without a heap; "
      "tuck's slot tables are in it");
  context.report().note("zram: mem_used_total over compr_data_size; its table is in neither");
  return {};
}

const TableEntry entry{"density", "memory that compressed pages take, over their bytes", run};

}  // namespace

}  // namespace tuck::bench

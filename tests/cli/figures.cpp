#include "tests/cli/figures.h"

namespace tuck::cli::test {
namespace {

nbd::OperationReport operation(const char* name, uint64_t requests, uint64_t nanoseconds) {
  nbd::OperationReport report;
  report.name = name;
  report.requests = requests;
  report.errors = 1;
  report.bytes = requests * kPageSize;
  report.latency_ns.add(HistogramSnapshot::bucket_of(nanoseconds), requests);
  return report;
}

}  // namespace

ServerFigures sample_figures() {
  ServerFigures figures;
  figures.version = "1.2.3";
  figures.process_id = 4711;
  figures.uptime_s = 93.5;
  figures.uris = {"nbd+unix:///?socket=disk.sock"};
  figures.exports = {{.name = "swap", .size_bytes = 1u << 30}, {.name = "", .size_bytes = 5000}};

  engine::ContentStats content;
  content.pages_stored = 1000;
  content.pages_compressed = 700;
  content.pages_same_filled = 200;
  content.pages_incompressible = 100;
  content.bytes_compressed = 1'024'000;
  figures.engine.content = content;
  figures.engine.areas.resize(2);
  figures.engine.areas[0].content = content;
  figures.engine.areas[0].codec = {engine::CodecKind::zstd, 3};
  figures.engine.operations.pages_stored = 1500;
  figures.engine.operations.pages_freed = 500;
  figures.engine.operations.loads_corrupt = 3;
  figures.engine.memory_limit_bytes = 2u << 30;
  figures.engine.slot_table_bytes = 8192;
  figures.engine.ledger.payload_bytes = 1'024'000;
  figures.engine.ledger.header_bytes = 6400;
  figures.engine.ledger.rounding_bytes = 5000;
  figures.engine.ledger.tail_bytes = 700;
  figures.engine.ledger.free_object_bytes = 60;
  figures.engine.ledger.reserve_bytes = 4u << 20;
  figures.engine.ledger.metadata_bytes = 12'288;
  figures.engine.ledger.classes = {{.object_bytes = 128,
                                    .zspage_frames = 2,
                                    .objects_per_zspage = 64,
                                    .zspages = 3,
                                    .objects = 150,
                                    .payload_bytes = 18'000,
                                    .free_objects = 42}};
  figures.pool = {.resident_bytes = 5'250'000, .swapped_bytes = 4096};

  nbd::ServerReport report;
  report.connections_now = 2;
  report.connections_serving = 1;
  report.connections_accepted = 7;
  report.connections_refused = 1;
  report.operations = {operation("read", 4000, 12'000), operation("write", 2000, 1'500'000)};
  figures.server = report;

  figures.process.resident_bytes = 9u << 20;
  figures.process.oom_score_adj = -1000;
  figures.process.threads = 6;
  figures.protections = {{"memory_lock", true, "all"}, {"oom_score_adj", false, "0"}};
  figures.thread_flags = {.threads = 6, .unprotected = 1, .first_unprotected = "tuck"};
  return figures;
}

}  // namespace tuck::cli::test

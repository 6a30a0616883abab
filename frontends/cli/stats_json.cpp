#include "frontends/cli/stats_json.h"

#include <algorithm>
#include <cstddef>

namespace tuck::cli {
namespace {

constexpr uint64_t bytes_of(uint64_t pages) {
  return pages * kPageSize;
}

// null where there is nothing to divide by: a ratio of nothing is not a number.
Json ratio(uint64_t original, uint64_t now) {
  if (original == 0 || now == 0) return nullptr;
  return static_cast<double>(original) / static_cast<double>(now);
}

Json content_json(const engine::ContentStats& content) {
  return {
      {"pages", content.pages_stored},
      {"original_bytes", bytes_of(content.pages_stored)},
      {"compressed_bytes", content.bytes_compressed},
      {"compression_ratio", ratio(bytes_of(content.pages_stored), content.bytes_compressed)},
      {"compressed_pages", content.pages_compressed},
      {"same_filled_pages", content.pages_same_filled},
      {"incompressible_pages", content.pages_incompressible},
  };
}

uint64_t ledger_sum(const engine::Stats& stats) {
  return stats.ledger.resident_bytes() + stats.slot_table_bytes;
}

Json memory_json(const engine::Stats& stats) {
  Json memory = content_json(stats.content);
  memory["resident_bytes"] = ledger_sum(stats);
  memory["memory_ratio"] = ratio(bytes_of(stats.content.pages_stored), ledger_sum(stats));
  memory["limit_bytes"] = stats.memory_limit_bytes;
  return memory;
}

Json ledger_json(const engine::Stats& stats, const KernelView& pool) {
  const allocator::Ledger& ledger = stats.ledger;
  return {
      {"payload_bytes", ledger.payload_bytes},
      {"header_bytes", ledger.header_bytes},
      {"rounding_bytes", ledger.rounding_bytes},
      {"tail_bytes", ledger.tail_bytes},
      {"free_object_bytes", ledger.free_object_bytes},
      {"reserve_bytes", ledger.reserve_bytes},
      {"metadata_bytes", ledger.metadata_bytes},
      {"slot_table_bytes", stats.slot_table_bytes},
      {"sum_bytes", ledger_sum(stats)},
      {"kernel_resident_bytes", pool.resident_bytes},
      {"kernel_swapped_bytes", pool.swapped_bytes},
  };
}

Json classes_json(const std::vector<allocator::ClassLedger>& classes) {
  Json list = Json::array();
  for (const allocator::ClassLedger& one : classes) {
    const uint64_t resident = one.zspages * bytes_of(one.zspage_frames);
    list.push_back({
        {"object_bytes", one.object_bytes},
        {"zspage_bytes", bytes_of(one.zspage_frames)},
        {"objects_per_zspage", one.objects_per_zspage},
        {"zspages", one.zspages},
        {"objects", one.objects},
        {"free_objects", one.free_objects},
        {"resident_bytes", resident},
        {"payload_bytes", one.payload_bytes},
        // Figures of a snapshot may be some calls apart; waste is never below nothing.
        {"wasted_bytes", resident - std::min(resident, one.payload_bytes)},
    });
  }
  return list;
}

Json engine_json(const engine::Stats& stats) {
  const engine::OperationStats& operations = stats.operations;
  return {
      {"pages_stored", operations.pages_stored},
      {"pages_loaded", operations.pages_loaded},
      {"pages_loaded_empty", operations.pages_loaded_empty},
      {"pages_freed", operations.pages_freed},
      {"stores_no_space", operations.stores_no_space},
      {"stores_pending", operations.stores_pending},
      {"reserve_misses", operations.reserve_misses},
      {"store_if_changed", operations.store_if_changed},
      {"loads_corrupt", operations.loads_corrupt},
      {"retired_objects", stats.retired_objects},
  };
}

Json exports_json(const ServerFigures& figures) {
  Json list = Json::array();
  for (size_t i = 0; i < figures.exports.size() && i < figures.engine.areas.size(); ++i) {
    const engine::AreaStats& area = figures.engine.areas[i];
    Json one = {
        {"name", figures.exports[i].name},
        {"size_bytes", figures.exports[i].size_bytes},
        {"codec", engine::to_string(area.codec)},
    };
    one.update(content_json(area.content));
    list.push_back(std::move(one));
  }
  return list;
}

Json operations_json(const std::vector<nbd::OperationReport>& operations) {
  Json all = Json::object();
  for (const nbd::OperationReport& operation : operations) {
    all[operation.name] = {
        {"requests", operation.requests},
        {"errors", operation.errors},
        {"bytes", operation.bytes},
        {"latency_p50_ns", operation.latency_ns.percentile(0.5)},
        {"latency_p99_ns", operation.latency_ns.percentile(0.99)},
        {"latency_p999_ns", operation.latency_ns.percentile(0.999)},
        {"latency_max_ns", operation.latency_ns.percentile(1.0)},
    };
  }
  return all;
}

Json connections_json(const nbd::ServerReport& report) {
  return {
      {"now", report.connections_now},
      {"serving", report.connections_serving},
      {"max", report.connections_max},
      {"accepted", report.connections_accepted},
      {"refused", report.connections_refused},
      {"refused_user", report.peers_refused},
      {"refused_in_flight", report.entries_refused},
      {"negotiations_failed", report.negotiations_failed},
      {"negotiations_timed_out", report.negotiations_timed_out},
      {"negotiations_over_limits", report.negotiations_over_limits},
      {"broken", report.connections_broken},
      {"stalled_requests", report.stalled_requests},
      {"stalled_replies", report.stalled_replies},
      {"in_flight_bytes", report.in_flight_bytes},
      {"in_flight_max_bytes", report.in_flight_bytes_max},
      {"requests_pending", report.requests_pending},
  };
}

Json process_json(const ProcessFigures& process) {
  return {
      {"resident_bytes", process.resident_bytes},
      {"resident_peak_bytes", process.resident_peak_bytes},
      {"locked_bytes", process.locked_bytes},
      {"swapped_bytes", process.swapped_bytes},
      {"oom_score_adj", process.oom_score_adj},
      {"threads", process.threads},
      {"minor_faults", process.minor_faults},
      {"major_faults", process.major_faults},
      {"user_s", process.user_s},
      {"system_s", process.system_s},
  };
}

Json protections_json(const ServerFigures& figures) {
  Json list = Json::object();
  for (const Protection& one : figures.protections)
    list[one.name] = {{"holds", one.holds}, {"detail", one.detail}};
  return {
      {"at_start", list},
      {"threads", figures.thread_flags.threads},
      {"threads_without_io_flusher", figures.thread_flags.unprotected},
  };
}

std::string dump_line(const Json& document) {
  // An export's name is the user's bytes; what is not UTF-8 in it becomes U+FFFD.
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Json to_json(const ServerFigures& figures) {
  Json document = {
      {"version", figures.version},
      {"pid", figures.process_id},
      {"uptime_s", figures.uptime_s},
      {"uris", figures.uris},
      {"memory", memory_json(figures.engine)},
      {"exports", exports_json(figures)},
  };
  if (figures.server) {
    document["operations"] = operations_json(figures.server->operations);
    document["connections"] = connections_json(*figures.server);
  }
  document["engine"] = engine_json(figures.engine);
  document["ledger"] = ledger_json(figures.engine, figures.pool);
  document["classes"] = classes_json(figures.engine.ledger.classes);
  document["process"] = process_json(figures.process);
  if (!figures.protections.empty()) document["protections"] = protections_json(figures);
  return document;
}

std::string answer_request(std::string_view line, const std::function<Json()>& figures) {
  const auto request = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object() || !request.contains("command") || !request["command"].is_string()) {
    return dump_line({{"error", "a request is one line like {\"command\":\"stat\"}"}});
  }
  if (request["command"] != "stat") {
    return dump_line({{"error", "unknown command; known: stat"}});
  }
  return dump_line(figures());
}

}  // namespace tuck::cli

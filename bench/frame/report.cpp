#include "bench/frame/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base.h"
#include "bench/frame/machine.h"

namespace tuck::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string number_text(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  if (value >= 100) return fmt::format("{:.1f}", value);
  return fmt::format("{:.3f}", value);
}

std::string cell_text(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* number = std::get_if<double>(&cell)) return number_text(*number);
  return fmt::format("{}", std::get<int64_t>(cell));
}

Json cell_json(const Cell& cell) {
  return std::visit([](const auto& value) { return Json(value); }, cell);
}

bool reaches(const Target& target, double value) {
  return target.sense == Target::Sense::at_most ? value <= target.value : value >= target.value;
}

std::string target_text(const Target& target) {
  return fmt::format(
      "{} {}", target.sense == Target::Sense::at_most ? "<=" : ">=", number_text(target.value));
}

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::reached:
      return "reached";
    case Verdict::missed:
      return "missed";
    case Verdict::too_wide:
      break;
  }
  return "too wide";
}

// Rows with the same keys share columns; other keys begin new ones.
std::string rows_text(const std::vector<Row>& rows) {
  std::vector<std::string> keys;
  for (const Row& row : rows) {
    for (const auto& [key, cell] : row.cells()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  TextTable columns;
  columns.add_row(keys);
  for (const Row& row : rows) {
    std::vector<std::string> cells(keys.size(), "-");
    for (const auto& [key, cell] : row.cells()) {
      const auto at = std::find(keys.begin(), keys.end(), key) - keys.begin();
      cells[static_cast<size_t>(at)] = cell_text(cell);
    }
    columns.add_row(std::move(cells));
  }
  return columns.to_string();
}

std::string summary_text(const std::vector<SummaryFigure>& summary) {
  TextTable columns;
  columns.add_row({"figure", "median", "rounds", "to reach", ""});
  for (const SummaryFigure& figure : summary) {
    columns.add_row({figure.name, number_text(figure.series.median()),
                     fmt::format("{} ... {}", number_text(figure.series.lowest()),
                                 number_text(figure.series.highest())),
                     figure.target ? target_text(*figure.target) : "",
                     figure.target ? verdict_text(figure.verdict()) : ""});
  }
  return columns.to_string();
}

Json target_json(const SummaryFigure& figure) {
  return Json{{"figure", figure.name},
              {"reach", target_text(*figure.target)},
              {"verdict", verdict_text(figure.verdict())}};
}

}  // namespace

Row& Row::add(std::string key, const Series& series) {
  return series.empty() ? *this : put(std::move(key), series.median());
}

Row& Row::add_with_spread(const std::string& key, const Series& series) {
  if (series.empty()) return *this;
  return put(key, series.median()).put(key + "_spread", series.spread());
}

Verdict SummaryFigure::verdict() const {
  const bool lowest = reaches(*target, series.lowest());
  const bool highest = reaches(*target, series.highest());
  if (lowest != highest) return Verdict::too_wide;
  return lowest ? Verdict::reached : Verdict::missed;
}

void Report::summarize(std::string name, Series series, std::optional<Target> target) {
  if (!series.empty()) summary_.push_back({std::move(name), std::move(series), target});
}

void Report::skip(std::string who, std::string why) {
  skipped_.push_back({std::move(who), std::move(why)});
}

std::vector<std::string> Report::warnings() const {
  std::vector<std::string> all = warnings_;
  for (const SummaryFigure& figure : summary_) {
    if (!figure.target || figure.verdict() != Verdict::too_wide) continue;
    all.push_back(
        fmt::format("{} was {} ... {}, too wide to say that it is {}: run more or longer rounds, "
                    "on a quiet machine",
                    figure.name, number_text(figure.series.lowest()),
                    number_text(figure.series.highest()), target_text(*figure.target)));
  }
  return all;
}

std::string to_text(const Report& report, const Setting& setting) {
  std::string text = fmt::format("{}: {} rounds of {} s, {}\npages: {}\n", setting.table,
                                 setting.rounds, setting.seconds, machine_text(), setting.pages);
  for (const std::string& note : report.notes())
    text += note + "\n";
  text += "\n" + rows_text(report.rows());
  if (!report.summary().empty()) text += "\n" + summary_text(report.summary());
  if (!report.skipped().empty() || !report.warnings().empty()) text += "\n";
  for (const Skipped& skipped : report.skipped())
    text += fmt::format("skipped: {}: {}\n", skipped.who, skipped.why);
  for (const std::string& warning : report.warnings())
    text += fmt::format("WARNING: {}\n", warning);
  return text;
}

std::string to_json(const Report& report, const Setting& setting) {
  Json json{
      {"table", setting.table},
      {"machine", machine_json()},
      {"pages", {{"synthetic", setting.synthetic}, {"from", setting.pages}}},
      {"setting",
       {{"rounds", setting.rounds}, {"seconds", setting.seconds}, {"threads", setting.threads}}},
      {"rows", Json::array()},
      {"summary", Json::object()},
      {"targets", Json::array()},
      {"skipped", Json::array()},
      {"warnings", report.warnings()},
      {"notes", report.notes()}};
  for (const Row& row : report.rows()) {
    Json object = Json::object();
    for (const auto& [key, cell] : row.cells())
      object[key] = cell_json(cell);
    json["rows"].push_back(std::move(object));
  }
  for (const SummaryFigure& figure : report.summary()) {
    json["summary"][figure.name] = figure.series.median();
    json["summary"][figure.name + "_spread"] = figure.series.spread();
    if (figure.target) json["targets"].push_back(target_json(figure));
  }
  for (const Skipped& skipped : report.skipped())
    json["skipped"].push_back({{"who", skipped.who}, {"why", skipped.why}});
  return json.dump(1) + "\n";
}

}  // namespace tuck::bench

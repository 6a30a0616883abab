// What a table leaves: rows, a summary of the figures that matter, and what has to be known to
// read them. One report, shown as text or as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/frame/series.h"

namespace tuck::bench {

using Cell = std::variant<std::string, double, int64_t>;

// A flat object; keys in the order in which they were added.
class Row {
 public:
  Row& add(std::string key, std::string text) { return put(std::move(key), std::move(text)); }
  Row& add(std::string key, const char* text) { return put(std::move(key), std::string(text)); }
  Row& add(std::string key, double number) { return put(std::move(key), number); }
  Row& add(std::string key, int64_t number) { return put(std::move(key), number); }
  // The series' median under key; nothing where the series is empty.
  Row& add(std::string key, const Series& series);
  // The series' spread under key_spread as well.
  Row& add_with_spread(const std::string& key, const Series& series);
  const std::vector<std::pair<std::string, Cell>>& cells() const noexcept { return cells_; }

 private:
  Row& put(std::string key, Cell cell) {
    cells_.emplace_back(std::move(key), std::move(cell));
    return *this;
  }
  std::vector<std::pair<std::string, Cell>> cells_;
};

// What a figure of the summary is to reach.
struct Target {
  enum class Sense : uint8_t { at_most, at_least };
  Sense sense = Sense::at_most;
  double value = 0;
};
constexpr Target at_most(double value) {
  return {Target::Sense::at_most, value};
}
constexpr Target at_least(double value) {
  return {Target::Sense::at_least, value};
}

// Whether all rounds say the same about the target. too_wide: some rounds reach it and some do not.
enum class Verdict : uint8_t { reached, missed, too_wide };

struct SummaryFigure {
  std::string name;
  Series series;
  std::optional<Target> target;

  // Only with a target.
  Verdict verdict() const;
};

// What was left out, and why.
struct Skipped {
  std::string who;
  std::string why;
};

class Report {
 public:
  void add(Row row) { rows_.push_back(std::move(row)); }
  // Nothing is added where the series is empty: the figure was not measured.
  void summarize(std::string name, Series series, std::optional<Target> target = {});
  void skip(std::string who, std::string why);
  // What a reader has to know before believing a figure.
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  // How something was measured: "queue depth 32, one connection".
  void note(std::string text) { notes_.push_back(std::move(text)); }

  const std::vector<Row>& rows() const noexcept { return rows_; }
  const std::vector<SummaryFigure>& summary() const noexcept { return summary_; }
  const std::vector<Skipped>& skipped() const noexcept { return skipped_; }
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  // Those given, and one for each figure whose rounds disagree about its target.
  std::vector<std::string> warnings() const;

 private:
  std::vector<Row> rows_;
  std::vector<SummaryFigure> summary_;
  std::vector<Skipped> skipped_;
  std::vector<std::string> warnings_;
  std::vector<std::string> notes_;
};

// What the report was made with.
struct Setting {
  std::string table;
  std::string pages;       // names of the corpora, or SYNTHETIC and why
  bool synthetic = false;  // no real pages
  unsigned rounds = 0;
  double seconds = 0;
  unsigned threads = 0;
};

std::string to_text(const Report& report, const Setting& setting);
// One object: table, machine, pages, setting, rows, summary, targets, skipped, warnings, notes
// (schema: bench/report.schema.json).
std::string to_json(const Report& report, const Setting& setting);

}  // namespace tuck::bench

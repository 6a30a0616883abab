// Tables: what tuck-bench can measure. A table is one file in bench/tables/: a function, and a
// TableEntry that makes it known by name.
#pragma once

#include <string>
#include <vector>

#include "base/base.h"
#include "bench/frame/pages.h"
#include "bench/frame/progress.h"
#include "bench/frame/report.h"

namespace tuck::bench {

struct Options {
  unsigned rounds = 5;   // that count; one more warms up
  double seconds = 1;    // how long a figure is measured each round, at least
  unsigned threads = 2;  // at most, where a table varies them
  bool peers = true;     // false: tuck alone
  PagesWanted pages;
};

// What a table has while it runs. Main thread only.
class Context {
 public:
  Context(const Options& options, const Pages& pages, Progress& progress)
      : options_(options), pages_(pages), progress_(progress) {}
  const Options& options() const noexcept { return options_; }
  const Pages& pages() const noexcept { return pages_; }
  Progress& progress() noexcept { return progress_; }
  Report& report() noexcept { return report_; }

 private:
  const Options& options_;
  const Pages& pages_;
  Progress& progress_;
  Report report_;
};

// Fills context.report(). Errors: what of tuck itself failed; peers that fail are skipped instead.
using RunTable = Status (*)(Context& context);

class TableEntry {
 public:
  // name and what are constant texts. Only for objects that live as long as the program.
  TableEntry(const char* name, const char* what, RunTable function);
  const char* name() const noexcept { return name_; }
  const char* what() const noexcept { return what_; }
  Status run(Context& context) const { return run_(context); }

 private:
  const char* name_;
  const char* what_;  // one line for --help
  RunTable run_;
};

// By name, in order.
const std::vector<const TableEntry*>& tables();
const TableEntry* find_table(const std::string& name);

}  // namespace tuck::bench

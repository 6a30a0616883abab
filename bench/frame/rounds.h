// Interleaved rounds: every contestant has its turn before anyone has the next, so that what
// changes on the machine meanwhile falls on all of them; their order turns by one each round.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/frame/report.h"
#include "bench/frame/table.h"

namespace tuck::bench {

// What a contestant measured in one turn, by name.
using Figures = std::map<std::string, double>;

struct Contestant {
  std::string name;
  std::function<Result<Figures, Error>()> turn;
  // Ours: the run ends with its error. A peer that fails is left out, with its error as the reason.
  bool ours = false;
};

class Measured {
 public:
  // Empty where there is no such contestant or figure.
  const Series& get(const std::string& contestant, const std::string& figure) const;
  Series ratio(const std::string& contestant, const std::string& over,
               const std::string& figure) const;
  bool has(const std::string& contestant) const { return figures_.contains(contestant); }

 private:
  friend Result<Measured, Error> run_rounds(Context& context,
                                            const std::vector<Contestant>& contestants);
  std::map<std::string, std::map<std::string, Series>> figures_;
};

// One round to warm up, whose figures are dropped, and context.rounds() that count.
Result<Measured, Error> run_rounds(Context& context, const std::vector<Contestant>& contestants);

}  // namespace tuck::bench

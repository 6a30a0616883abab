#include "bench/frame/rounds.h"

#include <fmt/format.h>

#include <set>

namespace tuck::bench {

const Series& Measured::get(const std::string& contestant, const std::string& figure) const {
  static const Series none;
  const auto found = figures_.find(contestant);
  if (found == figures_.end()) return none;
  const auto series = found->second.find(figure);
  return series == found->second.end() ? none : series->second;
}

Series Measured::ratio(const std::string& contestant, const std::string& over,
                       const std::string& figure) const {
  return bench::ratio(get(contestant, figure), get(over, figure));
}

Result<Measured, Error> run_rounds(Context& context, const std::vector<Contestant>& contestants) {
  Measured measured;
  std::set<std::string> out;
  const unsigned rounds = context.options().rounds + 1;
  const size_t turns = rounds * contestants.size();
  for (size_t turn = 0; turn < turns; ++turn) {
    const size_t round = turn / contestants.size();
    const Contestant& contestant = contestants[(turn + round) % contestants.size()];
    if (out.contains(contestant.name)) continue;
    context.progress().show(
        static_cast<double>(turn) / static_cast<double>(turns),
        fmt::format("{}, {}", round == 0 ? "warm-up" : fmt::format("round {}", round),
                    contestant.name));
    const auto figures = contestant.turn();
    if (!figures) {
      if (contestant.ours) return figures.error();
      context.report().skip(contestant.name, figures.error().message);
      out.insert(contestant.name);
      measured.figures_.erase(contestant.name);
      continue;
    }
    if (round == 0) continue;
    for (const auto& [name, value] : *figures)
      measured.figures_[contestant.name][name].add(value);
  }
  return measured;
}

}  // namespace tuck::bench

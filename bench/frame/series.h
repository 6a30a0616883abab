// What one figure was in each round of a run: its median, and how far the rounds were apart.
#pragma once

#include <cstddef>
#include <vector>

namespace tuck::bench {

class Series {
 public:
  void add(double value) { values_.push_back(value); }
  const std::vector<double>& values() const noexcept { return values_; }
  bool empty() const noexcept { return values_.empty(); }
  // The rest only where there are values.
  double median() const;
  double lowest() const;
  double highest() const;
  // (highest − lowest) / median, 0 where the median is 0.
  double spread() const;

 private:
  std::vector<double> values_;
};

// Round by round, so that what slowed the machine in a round slowed both. The shorter one's length.
Series ratio(const Series& numerator, const Series& denominator);

}  // namespace tuck::bench

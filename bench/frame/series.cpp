#include "bench/frame/series.h"

#include <algorithm>

namespace tuck::bench {

double Series::median() const {
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 != 0) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}

double Series::lowest() const {
  return *std::min_element(values_.begin(), values_.end());
}

double Series::highest() const {
  return *std::max_element(values_.begin(), values_.end());
}

double Series::spread() const {
  const double middle = median();
  return middle == 0 ? 0 : (highest() - lowest()) / middle;
}

Series ratio(const Series& numerator, const Series& denominator) {
  Series ratios;
  const size_t rounds = std::min(numerator.values().size(), denominator.values().size());
  for (size_t i = 0; i < rounds; ++i) {
    if (denominator.values()[i] != 0) ratios.add(numerator.values()[i] / denominator.values()[i]);
  }
  return ratios;
}

}  // namespace tuck::bench

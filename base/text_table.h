// Columns for people: the first on the left, all others right-aligned, two spaces between.
#pragma once

#include <string>
#include <vector>

namespace tuck {

class TextTable {
 public:
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const noexcept { return rows_.empty(); }
  // Each line begins with two spaces and ends without any.
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tuck

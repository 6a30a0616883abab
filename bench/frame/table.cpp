#include "bench/frame/table.h"

#include <algorithm>
#include <cstring>

namespace tuck::bench {

namespace {

// Filled before main(), whatever the order of the files' own objects.
std::vector<const TableEntry*>& known() {
  static std::vector<const TableEntry*> entries;
  return entries;
}

}  // namespace

TableEntry::TableEntry(const char* name, const char* what, RunTable function)
    : name_(name), what_(what), run_(function) {
  auto& entries = known();
  const auto behind = std::find_if(entries.begin(), entries.end(), [name](const TableEntry* other) {
    return std::strcmp(name, other->name()) < 0;
  });
  entries.insert(behind, this);
}

const std::vector<const TableEntry*>& tables() {
  return known();
}

const TableEntry* find_table(const std::string& name) {
  const auto found = std::find_if(known().begin(), known().end(), [&name](const TableEntry* entry) {
    return name == entry->name();
  });
  return found == known().end() ? nullptr : *found;
}

}  // namespace tuck::bench

// The process's mappings, as /proc/self/smaps tells them.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <vector>

namespace tuck::cli {

struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool overlaps(const AddressRange& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
};

struct Mapping {
  AddressRange range;
  std::string permissions;  // "rw-p"
  std::string name;         // a path, "[heap]", or nothing
  uint64_t resident_bytes = 0;
  uint64_t swapped_bytes = 0;
  std::string flags;  // VmFlags, two letters each, with a blank before and behind each

  uint64_t bytes() const noexcept { return range.end - range.begin; }
  bool may_be_touched() const noexcept {
    return permissions.size() >= 2 && (permissions[0] == 'r' || permissions[1] == 'w');
  }
  bool writable() const noexcept { return permissions.size() >= 2 && permissions[1] == 'w'; }
  bool has_flag(const char* letters) const {
    return flags.find(" " + std::string(letters) + " ") != std::string::npos;
  }
};

// Calls f for each mapping in the text, in its order. Lines that it does not know are skipped.
void for_each_mapping(std::istream& smaps, const std::function<void(const Mapping&)>& f);

// All mappings of this process now. Empty if /proc is not there.
std::vector<Mapping> own_mappings();

}  // namespace tuck::cli

#include "frontends/cli/memory_map.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

namespace tuck::cli {
namespace {

// "7f00-8000 rw-p 00000000 00:00 0   [heap]": the header of a mapping. Field lines begin with a
// capital letter, and so parse as no address.
bool parse_header(const std::string& line, Mapping& mapping) {
  const char* const end = line.data() + line.size();
  AddressRange range;
  const auto begin = std::from_chars(line.data(), end, range.begin, 16);
  if (begin.ec != std::errc{} || begin.ptr == end || *begin.ptr != '-') return false;
  const auto finish = std::from_chars(begin.ptr + 1, end, range.end, 16);
  if (finish.ec != std::errc{} || finish.ptr == end || *finish.ptr != ' ') return false;
  mapping = Mapping{};
  mapping.range = range;
  std::istringstream words(line.substr(static_cast<size_t>(finish.ptr - line.data())));
  std::string offset;
  std::string device;
  std::string inode;
  words >> mapping.permissions >> offset >> device >> inode >> std::ws;
  std::getline(words, mapping.name);
  return true;
}

// "Rss:   12 kB"
void parse_field(const std::string& line, std::string_view label, uint64_t& bytes) {
  if (!line.starts_with(label)) return;
  uint64_t kilobytes = 0;
  std::istringstream(line.substr(label.size())) >> kilobytes;
  bytes = kilobytes * 1024;
}

}  // namespace

void for_each_mapping(std::istream& smaps, const std::function<void(const Mapping&)>& f) {
  constexpr std::string_view kFlags = "VmFlags:";
  Mapping current;
  bool inside = false;
  std::string line;
  Mapping next;
  while (std::getline(smaps, line)) {
    if (parse_header(line, next)) {
      if (inside) f(current);
      current = next;
      inside = true;
    } else if (inside) {
      parse_field(line, "Rss:", current.resident_bytes);
      parse_field(line, "Swap:", current.swapped_bytes);
      if (line.starts_with(kFlags)) current.flags = line.substr(kFlags.size()) + " ";
    }
  }
  if (inside) f(current);
}

std::vector<Mapping> own_mappings() {
  std::vector<Mapping> mappings;
  std::ifstream smaps("/proc/self/smaps");
  for_each_mapping(smaps, [&mappings](const Mapping& one) { mappings.push_back(one); });
  return mappings;
}

}  // namespace tuck::cli

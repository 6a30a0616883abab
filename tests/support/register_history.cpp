#include "tests/support/register_history.h"

#include <algorithm>
#include <map>

namespace tuck::test {
namespace {

// All calls on one value. If one of them had ended before another began, the value was the
// register's for all the time in between (a forward zone); otherwise for some moment of the zone.
struct Zone {
  uint32_t value = 0;
  bool written = false;
  uint64_t write_begin = 0;
  uint64_t first_end = UINT64_MAX;
  uint64_t last_begin = 0;

  bool is_forward() const { return first_end < last_begin; }
  uint64_t low() const { return std::min(first_end, last_begin); }
  uint64_t high() const { return std::max(first_end, last_begin); }
};

std::string describe(const Zone& zone) {
  return "value " + std::to_string(zone.value) + (zone.is_forward() ? " (held " : " (within ") +
         std::to_string(zone.low()) + " to " + std::to_string(zone.high()) + ")";
}

std::map<uint32_t, Zone> zones_of(const std::vector<RegisterCall>& calls) {
  std::map<uint32_t, Zone> zones;
  // What was there before the first call: written by nobody, at time 0.
  zones[0] = Zone{0, true, 0, 0, 0};
  for (const RegisterCall& call : calls) {
    Zone& zone = zones[call.value];
    zone.value = call.value;
    if (call.is_write) {
      zone.written = true;
      zone.write_begin = call.begin;
    }
    zone.first_end = std::min(zone.first_end, call.end);
    zone.last_begin = std::max(zone.last_begin, call.begin);
  }
  return zones;
}

}  // namespace

std::optional<std::string> find_conflict(const std::vector<RegisterCall>& calls) {
  std::vector<Zone> forward;
  std::vector<Zone> backward;
  for (const auto& [value, zone] : zones_of(calls)) {
    if (!zone.written) return describe(zone) + " was read and never written";
    if (zone.first_end < zone.write_begin) return describe(zone) + " was read before its write";
    (zone.is_forward() ? forward : backward).push_back(zone);
  }
  const auto by_low = [](const Zone& a, const Zone& b) { return a.low() < b.low(); };
  std::sort(forward.begin(), forward.end(), by_low);
  for (size_t i = 1; i < forward.size(); ++i) {
    if (forward[i].low() < forward[i - 1].high()) {
      return describe(forward[i - 1]) + " and " + describe(forward[i]) + " at the same time";
    }
  }
  for (const Zone& zone : backward) {
    // Forward zones do not overlap: only the last one that begins before this one can cover it.
    auto after = std::upper_bound(forward.begin(), forward.end(), zone, by_low);
    if (after == forward.begin()) continue;
    const Zone& before = *--after;
    if (before.low() < zone.low() && zone.high() < before.high()) {
      return describe(zone) + " in the middle of " + describe(before);
    }
  }
  return std::nullopt;
}

}  // namespace tuck::test

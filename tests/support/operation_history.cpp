#include "tests/support/operation_history.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <unordered_set>

namespace tuck::test {
namespace {

// What may be true at a moment: which of the open calls have taken effect, and what the cell holds.
struct Moment {
  uint32_t done = 0;  // a bit a place
  uint32_t held = 0;
};
uint64_t key_of(Moment moment) {
  return static_cast<uint64_t>(moment.done) << 32 | moment.held;
}
Moment moment_of(uint64_t key) {
  return {static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key)};
}
using Moments = std::unordered_set<uint64_t>;

std::string describe(const Operation& operation) {
  static constexpr std::array<const char*, 5> kNames = {"write", "may write", "replace", "see",
                                                        "see other than"};
  return "lane " + std::to_string(operation.lane) + ": " +
         kNames[static_cast<size_t>(operation.kind)] + " " + std::to_string(operation.value) +
         (operation.kind == Operation::Kind::replace ? " for " + std::to_string(operation.expected)
                                                     : std::string()) +
         " (" + std::to_string(operation.begin) + " to " + std::to_string(operation.end) + ")";
}

bool is_sight(const Operation& operation) {
  return operation.kind == Operation::Kind::see || operation.kind == Operation::Kind::see_other;
}
bool keep_order(const Operation& first, const Operation& second) {
  return first.lane == second.lane && !(is_sight(first) && is_sight(second));
}
bool allows(const Operation& operation, uint32_t held) {
  switch (operation.kind) {
    case Operation::Kind::see:
      return ((held ^ operation.value) & operation.mask) == 0;
    case Operation::Kind::see_other:
      return held != operation.value;
    case Operation::Kind::replace:
      return held == operation.expected;
    default:
      return true;
  }
}

class Judge {
 public:
  explicit Judge(uint32_t initial) { moments_.insert(key_of({0, initial})); }

  void begin(const Operation& operation) {
    const auto place = static_cast<uint32_t>(std::countr_one(taken_));
    if (place >= kOpenMax) {
      std::fprintf(stderr, "more than %u calls on one cell are open together\n", kOpenMax);
      std::abort();
    }
    Open open{&operation, 0};
    for (uint32_t i = 0; i < kOpenMax; ++i) {
      if (is_open(i) && keep_order(*open_[i].operation, operation)) open.behind |= 1u << i;
    }
    open_[place] = open;
    taken_ |= 1u << place;
  }

  // It must have taken effect by now. False: it cannot have.
  bool end(const Operation& operation) {
    uint32_t place = 0;
    while (!is_open(place) || open_[place].operation != &operation)
      ++place;
    Moments after;
    Moments looked_at;
    std::vector<Moment> to_look_at;
    for (const uint64_t key : moments_)
      to_look_at.push_back(moment_of(key));
    while (!to_look_at.empty()) {
      Moment moment = to_look_at.back();
      to_look_at.pop_back();
      see_all(moment);
      if ((moment.done >> place & 1) != 0) {
        moment.done &= ~(1u << place);
        after.insert(key_of(moment));
        continue;
      }
      if (!looked_at.insert(key_of(moment)).second) continue;
      for (uint32_t i = 0; i < kOpenMax; ++i) {
        if (!may_happen(moment, i) || is_sight(*open_[i].operation)) continue;
        const Operation& next = *open_[i].operation;
        const uint32_t done = moment.done | 1u << i;
        to_look_at.push_back({done, next.value});
        if (next.kind == Operation::Kind::may_write) to_look_at.push_back({done, moment.held});
      }
    }
    if (after.empty()) return false;
    moments_ = std::move(after);
    taken_ &= ~(1u << place);
    for (Open& open : open_)
      open.behind &= ~(1u << place);
    return true;
  }

  std::string held() const {
    std::vector<uint32_t> values;
    for (const uint64_t key : moments_)
      values.push_back(moment_of(key).held);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::string text;
    for (const uint32_t value : values)
      text += " " + std::to_string(value);
    for (uint32_t i = 0; i < kOpenMax; ++i) {
      if (is_open(i)) text += "; open: " + describe(*open_[i].operation);
    }
    return text;
  }

 private:
  struct Open {
    const Operation* operation = nullptr;
    uint32_t behind = 0;  // places that come before it
  };

  bool is_open(uint32_t place) const { return (taken_ >> place & 1) != 0; }
  bool may_happen(const Moment& moment, uint32_t place) const {
    return is_open(place) && (moment.done >> place & 1) == 0 &&
           (open_[place].behind & ~moment.done) == 0 &&
           allows(*open_[place].operation, moment.held);
  }
  // What can be seen now is seen now: sight changes nothing, so nothing is lost by that.
  void see_all(Moment& moment) const {
    for (bool again = true; again;) {
      again = false;
      for (uint32_t i = 0; i < kOpenMax; ++i) {
        if (!may_happen(moment, i) || !is_sight(*open_[i].operation)) continue;
        moment.done |= 1u << i;
        again = true;
      }
    }
  }

  std::array<Open, kOpenMax> open_{};
  uint32_t taken_ = 0;
  Moments moments_;
};

}  // namespace

std::optional<std::string> find_impossible(std::vector<Operation> operations, uint32_t initial) {
  // As they were called: those of a lane that began at one time are in order already.
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation& a, const Operation& b) { return a.begin < b.begin; });
  std::vector<const Operation*> by_end;
  by_end.reserve(operations.size());
  for (const Operation& operation : operations)
    by_end.push_back(&operation);
  std::stable_sort(by_end.begin(), by_end.end(),
                   [](const Operation* a, const Operation* b) { return a->end < b->end; });
  Judge judge(initial);
  auto next = operations.begin();
  for (const Operation* const ended : by_end) {
    for (; next != operations.end() && next->begin <= ended->end; ++next)
      judge.begin(*next);
    if (judge.end(*ended)) continue;
    return describe(*ended) + " cannot have been: before it the cell held one of" + judge.held();
  }
  return std::nullopt;
}

}  // namespace tuck::test

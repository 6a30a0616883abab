// Decides whether what threads wrote to and read from one slot can have happened one after another
// (linearisability of a register). Each value is written once, so the question has an exact answer
// in O(n log n): P. Gibbons and E. Korach, "Testing shared memories", SIAM J. Comput. 26 (1997).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tuck::test {

// One call, from before it began to after it returned.
struct RegisterCall {
  uint32_t value = 0;  // written, or seen
  bool is_write = false;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Hands out the times of RegisterCall: later calls get larger ones. Relaxed on purpose: the test's
// own clock must not order the threads that it watches more than the machine does.
class Clock {
 public:
  uint64_t now() noexcept { return time_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> time_{1};
};

// Nothing if the calls can be put in an order that respects the times; otherwise which values are
// in conflict. A value that was read and never written, other than 0 (there from the start), is
// one.
std::optional<std::string> find_conflict(const std::vector<RegisterCall>& calls);

}  // namespace tuck::test

// Decides whether what several callers did to one cell (a slot, a stretch of bytes) can have
// happened one after another. Exact for writes of any values, repeated ones too, conditional writes
// and partial sight; register_history.h is the fast judge for plain reads and writes of values that
// are written once.
//
// The search follows time: of the calls that are open at a moment, which have taken effect, and
// what does the cell hold then? It looks at no order that the moments of begin and end rule out
// ("just in time": G. Lowe, "Testing for linearizability", 2017), so its cost grows with the number
// of calls that are open together, not with the history's length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tuck::test {

struct Operation {
  enum class Kind : uint8_t {
    write,      // the cell holds value
    may_write,  // value, or what it held (a call that failed in part)
    replace,    // held `expected`, holds value
    see,        // holds value, as far as mask looks
    see_other,  // holds something else than value
  };
  Kind kind = Kind::see;
  // Whose call it is: the calls of one lane take effect in the order in which they began, also
  // where several are open together. Two that only see are not in each other's way, and keep no
  // order.
  uint32_t lane = 0;
  uint32_t value = 0;
  uint32_t expected = 0;
  uint32_t mask = UINT32_MAX;
  // From before the call began to after it returned.
  uint64_t begin = 0;
  uint64_t end = 0;
};

// At one moment so many calls may be open.
inline constexpr uint32_t kOpenMax = 32;

// Nothing if the operations can be put in an order that respects times and lanes, the cell holding
// `initial` at first; otherwise the first that cannot be, and what the cell may have held by then.
std::optional<std::string> find_impossible(std::vector<Operation> operations, uint32_t initial = 0);

}  // namespace tuck::test

#include "base/result.h"

namespace tuck {

const char* name_of(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
      return "ok";
    case Errc::no_space:
      return "no_space";
    case Errc::pending:
      return "pending";
    case Errc::changed:
      return "changed";
    case Errc::out_of_range:
      return "out_of_range";
    case Errc::corrupt:
      return "corrupt";
    case Errc::invalid:
      return "invalid";
    case Errc::shutting_down:
      return "shutting_down";
  }
  return "unknown";
}

}  // namespace tuck

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

namespace {

// Short enough for a std::string to hold it without allocating.
constexpr const char* kNoMemory = "out of memory";
static_assert(std::char_traits<char>::length(kNoMemory) <= 15);

}  // namespace

Error no_memory_for(const char* what) noexcept {
  try {
    return Error{Errc::no_space,
                 std::string("no memory for ") + what + ": free some, or lower the sizes"};
  } catch (const std::bad_alloc&) {
    return Error{Errc::no_space, kNoMemory};
  }
}

Error no_thread_for(const char* what, const std::system_error& failure) noexcept {
  try {
    return Error{Errc::no_space, std::string("cannot start a thread for ") + what + " (" +
                                     failure.code().message() +
                                     "): raise the limit of processes (ulimit -u)"};
  } catch (const std::bad_alloc&) {
    return Error{Errc::no_space, kNoMemory};
  }
}

}  // namespace tuck

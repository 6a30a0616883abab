#include "base/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tuck {

void check_failed(const char* what, const char* file, int line) noexcept {
  // The stack only: this may run where the heap cannot be trusted.
  char text[512];
  const int length =
      std::snprintf(text, sizeof text, "tuck: check failed: %s (%s:%d)\n", what, file, line);
  if (length > 0) {
    const auto bytes =
        static_cast<size_t>(length) < sizeof text ? static_cast<size_t>(length) : sizeof text - 1;
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, bytes);
  }
  std::abort();
}

}  // namespace tuck

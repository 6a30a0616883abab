// Three levels of checking. The cost decides the level, not the mood:
//   TUCK_CHECK   always on, O(1): a broken invariant stops the process before a wrong byte leaves
//                it
//   TUCK_DCHECK  debug builds, O(1)
//   verify()     a member function of every structure: the full walk, called by tests
#pragma once

namespace tuck {

[[noreturn]] void check_failed(const char* what, const char* file, int line) noexcept;

}  // namespace tuck

#define TUCK_CHECK(condition) \
  (static_cast<bool>(condition) ? void() : ::tuck::check_failed(#condition, __FILE__, __LINE__))

#if defined(TUCK_DEBUG)
#define TUCK_DCHECK(condition) TUCK_CHECK(condition)
#else
#define TUCK_DCHECK(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif

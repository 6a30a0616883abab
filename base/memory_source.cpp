#include "base/memory_source.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/units.h"

// Linux 5.14; the constant is newer than some systems' headers.
#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif
// Linux 5.18.
#if !defined(MADV_DONTNEED_LOCKED)
#define MADV_DONTNEED_LOCKED 24
#endif

namespace tuck {

Result<std::byte*, Error> AnonymousMemorySource::reserve(size_t bytes,
                                                         const char* purpose) noexcept {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    return Error{Errc::no_space,
                 "cannot reserve " + format_size_rounded(bytes) + " of address space for " +
                     purpose + " (" + std::strerror(errno) +
                     "): lower the sizes, or raise ulimit -v or vm.overcommit_memory"};
  }
  // Refused only by kernels without huge pages, where it changes nothing.
  static_cast<void>(::madvise(at, bytes, MADV_NOHUGEPAGE));
  return static_cast<std::byte*>(at);
}

void AnonymousMemorySource::unreserve(std::byte* at, size_t bytes) noexcept {
  TUCK_CHECK(::munmap(at, bytes) == 0);
}

Errc AnonymousMemorySource::populate(std::byte* at, size_t bytes) noexcept {
  for (;;) {
    if (::madvise(at, bytes, MADV_POPULATE_WRITE) == 0) return Errc::ok;
    if (errno == EINTR || errno == EAGAIN) continue;
    // A part may have been populated: back to nothing, so that the caller's count stays exact.
    release(at, bytes);
    return Errc::no_space;
  }
}

void AnonymousMemorySource::release(std::byte* at, size_t bytes) noexcept {
  int advice = MADV_DONTNEED;
  while (::madvise(at, bytes, advice) != 0) {
    if (errno == EAGAIN || errno == EINTR) continue;
    // EINVAL: the memory is locked (mlockall), which wants the other word.
    TUCK_CHECK(errno == EINVAL && advice == MADV_DONTNEED);
    advice = MADV_DONTNEED_LOCKED;
  }
}

}  // namespace tuck

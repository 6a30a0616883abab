#include "base/memory_source.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

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

namespace {

// The kernel's answer to a request that came at a bad moment: asked again, but not for ever.
constexpr int kAttempts = 100;

Error cannot_reserve(size_t bytes, const char* purpose, int error) noexcept {
  try {
    return Error{Errc::no_space,
                 "cannot reserve " + format_size_rounded(bytes) + " of address space for " +
                     purpose + " (" + std::strerror(error) +
                     "): lower the sizes, or raise ulimit -v or vm.overcommit_memory"};
  } catch (const std::bad_alloc&) {
    return no_memory_for(purpose);
  }
}

// Whether the kernel took the frames.
bool drop_frames(std::byte* at, size_t bytes) noexcept {
  int advice = MADV_DONTNEED;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (::madvise(at, bytes, advice) == 0) return true;
    // EINVAL: the memory is locked (mlockall), which wants the other word.
    if (errno == EINVAL) advice = MADV_DONTNEED_LOCKED;
  }
  return false;
}

}  // namespace

Result<std::byte*, Error> AnonymousMemorySource::reserve(size_t bytes,
                                                         const char* purpose) noexcept {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return cannot_reserve(bytes, purpose, errno);
  // Refused only by kernels without huge pages, where it changes nothing.
  static_cast<void>(::madvise(at, bytes, MADV_NOHUGEPAGE));
  return static_cast<std::byte*>(at);
}

void AnonymousMemorySource::unreserve(std::byte* at, size_t bytes) noexcept {
  if (::munmap(at, bytes) == 0) return;
  // A process with as many mappings as it may have cannot cut one in two. The addresses are lost,
  // the frames are not.
  static_cast<void>(drop_frames(at, bytes));
}

Errc AnonymousMemorySource::populate(std::byte* at, size_t bytes) noexcept {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (::madvise(at, bytes, MADV_POPULATE_WRITE) == 0) return Errc::ok;
    if (errno != EINTR && errno != EAGAIN) break;
  }
  // A part may have been populated: back to nothing, so that the caller's count stays exact. No
  // kernel is known to refuse this for good; one that does has frames there that nobody counts, all
  // zeroes, for the next attempt to find.
  static_cast<void>(drop_frames(at, bytes));
  return Errc::no_space;
}

void AnonymousMemorySource::release(std::byte* at, size_t bytes) noexcept {
  if (drop_frames(at, bytes)) return;
  // No kernel is known to refuse for good. One that does gets no frames back, and the range reads
  // as zeroes all the same.
  std::memset(at, 0, bytes);
}

}  // namespace tuck

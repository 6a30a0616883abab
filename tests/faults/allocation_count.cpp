#include "tests/faults/allocation_count.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "tests/support/scale.h"

namespace tuck::test {

namespace {

// A line a thread, claimed at its first call and never given back; with all of them taken the last
// one is shared.
struct Line {
  std::array<char, 16> name{};
  std::atomic<uint64_t> round{0};  // of count_from_here(); counts of older ones are not valid
  std::atomic<uint64_t> heap{0};
  std::atomic<uint64_t> system{0};
  std::atomic<uint64_t> frames{0};
};
constexpr size_t kLines = 256;
std::array<Line, kLines> lines;
std::atomic<size_t> lines_taken{0};
std::atomic<uint64_t> round_now{1};
thread_local Line* own = nullptr;

// Unused where a sanitizer has the heap for itself.
[[maybe_unused]] Line& line() {
  if (own == nullptr) {
    const size_t taken = lines_taken.fetch_add(1);
    own = &lines[taken < kLines ? taken : kLines - 1];
  }
  // The name may have been given since the last round.
  const uint64_t round = round_now.load();
  if (own->round.load() != round) {
    prctl(PR_GET_NAME, own->name.data());
    own->heap.store(0);
    own->system.store(0);
    own->frames.store(0);
    own->round.store(round);
  }
  return *own;
}

}  // namespace

void count_from_here() {
  round_now.fetch_add(1);
}

AllocationCount allocations_of(std::string_view name_prefix) {
  AllocationCount sum;
  for (const Line& one : lines) {
    if (one.round.load() != round_now.load()) continue;
    if (!std::string_view(one.name.data()).starts_with(name_prefix)) continue;
    sum.heap += one.heap.load();
    sum.system += one.system.load();
    sum.frames += one.frames.load();
  }
  return sum;
}

bool counts_allocations() {
  return !kSanitized;
}

}  // namespace tuck::test

#if !defined(TUCK_TEST_ASAN) && !defined(TUCK_TEST_TSAN)

// In place of the C library's own, for the whole process and its libraries; the C library gives
// what it would have given under these names.
extern "C" {
void* __libc_malloc(size_t bytes);                     // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t bytes);       // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* at, size_t bytes);          // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT(bugprone-reserved-identifier)
void __libc_free(void* at);                            // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t bytes) {
  tuck::test::line().heap.fetch_add(1);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  tuck::test::line().heap.fetch_add(1);
  return __libc_calloc(count, bytes);
}
void* realloc(void* at, size_t bytes) {
  tuck::test::line().heap.fetch_add(1);
  return __libc_realloc(at, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  tuck::test::line().heap.fetch_add(1);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  tuck::test::line().heap.fetch_add(1);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** at, size_t alignment, size_t bytes) {
  tuck::test::line().heap.fetch_add(1);
  *at = __libc_memalign(alignment, bytes);
  return *at == nullptr ? ENOMEM : 0;
}
void free(void* at) {
  if (at != nullptr) tuck::test::line().heap.fetch_add(1);
  __libc_free(at);
}

void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  tuck::test::line().system.fetch_add(1);
  static const auto real = reinterpret_cast<decltype(&mmap)>(dlsym(RTLD_NEXT, "mmap"));
  return real(at, bytes, protection, flags, fd, offset);
}
int munmap(void* at, size_t bytes) {
  tuck::test::line().system.fetch_add(1);
  static const auto real = reinterpret_cast<decltype(&munmap)>(dlsym(RTLD_NEXT, "munmap"));
  return real(at, bytes);
}
int mprotect(void* at, size_t bytes, int protection) {
  tuck::test::line().system.fetch_add(1);
  static const auto real = reinterpret_cast<decltype(&mprotect)>(dlsym(RTLD_NEXT, "mprotect"));
  return real(at, bytes, protection);
}
int madvise(void* at, size_t bytes, int advice) {
  tuck::test::line().frames.fetch_add(1);
  static const auto real = reinterpret_cast<decltype(&madvise)>(dlsym(RTLD_NEXT, "madvise"));
  return real(at, bytes, advice);
}
int brk(void* at) {
  tuck::test::line().system.fetch_add(1);
  static const auto real = reinterpret_cast<decltype(&brk)>(dlsym(RTLD_NEXT, "brk"));
  return real(at);
}
void* sbrk(intptr_t by) {
  tuck::test::line().system.fetch_add(1);
  static const auto real = reinterpret_cast<decltype(&sbrk)>(dlsym(RTLD_NEXT, "sbrk"));
  return real(by);
}
}  // extern "C"

#endif

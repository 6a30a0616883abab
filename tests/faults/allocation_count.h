// Counts what threads ask of the heap and of the system's memory: malloc and its kin, mmap and its
// kin. Threads are told by their names.
#pragma once

#include <cstdint>
#include <string_view>

namespace tuck::test {

struct AllocationCount {
  uint64_t heap = 0;    // malloc, calloc, realloc, aligned ones, free of something
  uint64_t system = 0;  // mmap, munmap, mprotect, brk, sbrk
  uint64_t frames = 0;  // madvise
};

// False: this build's sanitizer has the heap for itself.
bool counts_allocations();
// All threads begin at nothing. Their names must be what they are to be counted by.
void count_from_here();
// Of all threads whose names begin so.
AllocationCount allocations_of(std::string_view name_prefix);

}  // namespace tuck::test

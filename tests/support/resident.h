// What the kernel says about this process's memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tuck::test {

// Resident bytes of [begin, begin + length), by /proc/self/smaps: the sum of Rss over the mappings
// that lie in the range. The range must not share a mapping with anything else.
uint64_t resident_bytes(const void* begin, size_t length);
// Of the whole process (VmRSS).
uint64_t process_resident_bytes();

}  // namespace tuck::test

/* Asks for more than there is, with pages that do not compress, while the memory of a bystander is
   on the same disk. */
#ifndef TUCK_TESTS_GUEST_EXHAUST_H
#define TUCK_TESTS_GUEST_EXHAUST_H

#include <stdint.h>

/* A child fills that many pages and checks them as it goes; the kernel may kill it, which is
   reported and no failure. The bystander, the calling process, writes its pages into memory_map()'s
   memory before, and checks them after. Returns how many they are. */
uint64_t exhaust_memory(uint64_t pages, uint64_t bystander_pages);

#endif

/* The memory under test: pages whose content is known from their number and how often they were
   written, and the checks of them. Safe to use from several threads on different pages. */
#ifndef TUCK_TESTS_GUEST_MEMORY_H
#define TUCK_TESTS_GUEST_MEMORY_H

#include <stdint.h>

struct Part {
  uint64_t begin, end; /* pages */
};

/* Maps that many pages, all zeroes, and locks what is known about them in memory, so that only the
   pages under test can go wrong. */
void memory_map(uint64_t pages);
void memory_unmap_from(uint64_t first, uint64_t pages);

void memory_write(uint64_t page);
void memory_check(uint64_t page);
/* They are zeroes from then on: given back with madvise, or unmapped and mapped anew. */
void memory_drop(uint64_t first, uint64_t count);
void memory_replace(uint64_t first, uint64_t count);

/* Orders of checking: forwards, no two neighbours after each other, backwards, and so on. */
void memory_check_part(const struct Part* part, unsigned order);

/* work(part) for each half of the pages, in two threads. */
void memory_in_parts(void (*work)(const struct Part* part), uint64_t pages);

unsigned long memory_wrong_words(void);
unsigned long memory_checked_pages(void);
void memory_report(void);

#endif

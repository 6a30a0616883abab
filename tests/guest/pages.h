/* What the guest's pages hold: a function of seed, page number and version alone, so that a page
   can be checked without keeping a copy of it. */
#ifndef TUCK_TESTS_GUEST_PAGES_H
#define TUCK_TESTS_GUEST_PAGES_H

#include <stddef.h>
#include <stdint.h>

enum { kPageBytes = 4096, kPageWords = kPageBytes / 8 };

/* Makes the vocabulary that all pages draw on; once, before the first pages_make(). */
void pages_init(uint64_t seed);

/* From now on pages_make() makes pages that do not compress. */
void pages_only_noise(void);

/* The page's content. Version 0 is all zeroes; any other begins with pages_name(page, version), so
   no two pages are alike, and holds a mix of text, pointers, small numbers, noise and zeroes that
   lz4 and zstd bring down to between a half and a third. */
void pages_make(uint64_t page, unsigned version, uint64_t out[kPageWords]);

/* The first word of a page, which tells whose content was found where another's was expected. */
uint64_t pages_name(uint64_t page, unsigned version);

/* A number that depends on all bits of its arguments. */
uint64_t pages_mix(uint64_t a, uint64_t b);

#endif

#define _GNU_SOURCE
#include "memory.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "pages.h"
#include "process.h"

enum {
  /* More than there is may be asked for. */
  kMapFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
  kThreads = 2,
  kWrongPagesShown = 8,
  kDropped = 0x8000,
};

static uint64_t* memory;
/* One a page: counts its writes and is never used twice; kDropped is set while the page has been
   given back and not written since. */
static uint16_t* versions;
static atomic_ulong wrong_words, wrong_pages, checked_pages, written_pages, dropped_pages;

static uint64_t* page_at(uint64_t page) {
  return memory + page * kPageWords;
}

static unsigned expected_version(uint64_t page) {
  return versions[page] & kDropped ? 0 : versions[page];
}

static void* map(void* where, size_t bytes, int flags) {
  void* mapped = mmap(where, bytes, PROT_READ | PROT_WRITE, kMapFlags | flags, -1, 0);
  if (mapped == MAP_FAILED) process_fail("mmap");
  return mapped;
}

void memory_map(uint64_t pages) {
  memory = map(NULL, (size_t)pages * kPageBytes, 0);
  versions = map(NULL, (size_t)pages * sizeof *versions, 0);
  if (mlock(versions, (size_t)pages * sizeof *versions) != 0) process_fail("mlock");
}

void memory_unmap_from(uint64_t first, uint64_t pages) {
  if (munmap(page_at(first), (size_t)(pages - first) * kPageBytes) != 0) process_fail("munmap");
}

void memory_write(uint64_t page) {
  versions[page] = (uint16_t)((versions[page] & ~kDropped) + 1);
  pages_make(page, versions[page], page_at(page));
  written_pages++;
}

static void show_wrong(uint64_t page, size_t word, uint64_t expected, uint64_t found) {
  if (wrong_pages++ >= kWrongPagesShown) return;
  uint64_t name = page_at(page)[0];
  printf("wrong_page=%" PRIu64 " version=%u word=%zu expected=%016" PRIx64 " found=%016" PRIx64
         " names_page=%" PRIu64 " names_version=%u\n",
         page, expected_version(page), word, expected, found, name >> 16,
         (unsigned)(name & 0xffff));
}

void memory_check(uint64_t page) {
  uint64_t expected[kPageWords];
  pages_make(page, expected_version(page), expected);
  const uint64_t* found = page_at(page);
  checked_pages++;
  if (memcmp(expected, found, kPageBytes) == 0) return;
  unsigned long wrong = 0;
  size_t first = kPageWords;
  for (size_t i = 0; i < kPageWords; i++) {
    if (expected[i] == found[i]) continue;
    if (first == kPageWords) first = i;
    wrong++;
  }
  /* A page that compared unequal and now has no wrong word has changed between two reads of it. */
  wrong_words += wrong ? wrong : 1;
  first %= kPageWords;
  show_wrong(page, first, expected[first], found[first]);
}

static void mark_dropped(uint64_t first, uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    versions[first + i] |= kDropped;
  dropped_pages += count;
}

void memory_drop(uint64_t first, uint64_t count) {
  if (madvise(page_at(first), (size_t)count * kPageBytes, MADV_DONTNEED) != 0)
    process_fail("madvise");
  mark_dropped(first, count);
}

void memory_replace(uint64_t first, uint64_t count) {
  map(page_at(first), (size_t)count * kPageBytes, MAP_FIXED);
  mark_dropped(first, count);
}

void memory_check_part(const struct Part* part, unsigned order) {
  uint64_t count = part->end - part->begin;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t at = i;
    if (order % 3 == 1) at = i * 104729 % count;
    if (order % 3 == 2) at = count - 1 - i;
    memory_check(part->begin + at);
  }
}

struct Work {
  pthread_t thread;
  struct Part part;
  void (*work)(const struct Part* part);
};

static void* run_work(void* argument) {
  const struct Work* work = argument;
  work->work(&work->part);
  return NULL;
}

void memory_in_parts(void (*work)(const struct Part* part), uint64_t pages) {
  struct Work works[kThreads];
  for (unsigned i = 0; i < kThreads; i++) {
    works[i].part.begin = pages * i / kThreads;
    works[i].part.end = pages * (i + 1) / kThreads;
    works[i].work = work;
    process_check(pthread_create(&works[i].thread, NULL, run_work, &works[i]), "pthread_create");
  }
  for (unsigned i = 0; i < kThreads; i++)
    pthread_join(works[i].thread, NULL);
}

unsigned long memory_wrong_words(void) {
  return wrong_words;
}

unsigned long memory_checked_pages(void) {
  return checked_pages;
}

void memory_report(void) {
  printf("checked_pages=%lu written_pages=%lu dropped_pages=%lu\n", checked_pages, written_pages,
         dropped_pages);
  printf("wrong_words=%lu wrong_pages=%lu\n", wrong_words, wrong_pages);
}

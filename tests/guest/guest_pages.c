/* Runs inside the guest: fills more memory than the guest has, changes parts of it, checks every
   word in several orders from two threads, and takes the swap disk away under it.

   guest_pages SWAP_DEVICE MIB ROUNDS SEED

   Prints lines of key=value. Exit status 0: all words were right, and the disk was taken away. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <time.h>
#include <unistd.h>

#include "pages.h"

enum {
  kThreads = 2,
  kHolePages = 64, /* what is dropped at once: larger than a read-ahead, smaller than a cluster */
  kKeptBytes = 80 << 20, /* stays when the disk goes: must fit into the guest without it */
  kWrongPagesShown = 8,
  kDropped = 0x8000,
};

struct Part {
  pthread_t thread;
  uint64_t begin, end; /* pages */
};

static uint64_t* memory;
static uint16_t* versions; /* one a page, see below */
static unsigned rounds;
static double start_seconds;
static atomic_ulong wrong_words, wrong_pages, checked_pages, written_pages, dropped_pages;

static uint64_t* page_at(uint64_t page) {
  return memory + page * kPageWords;
}

static void fail(const char* what) {
  printf("failed=%s: %s\n", what, strerror(errno));
  exit(2);
}

/* A page's version counts its writes and is never used twice; kDropped is set while the page has
   been given back and not written since. The versions are locked in memory, so that only the pages
   under test can go wrong. */
static unsigned expected_version(uint64_t page) {
  return versions[page] & kDropped ? 0 : versions[page];
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void write_page(uint64_t page) {
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

static void check_page(uint64_t page) {
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

/* Half of the pages, far apart from each other, get a new content. */
static void rewrite_some(const struct Part* part, unsigned round) {
  uint64_t count = part->end - part->begin;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t page = part->begin + i * 7919 % count;
    if (pages_mix(page, round) % 2 == 0) write_page(page);
  }
}

static void drop(uint64_t first, uint64_t count) {
  if (madvise(page_at(first), (size_t)count * kPageBytes, MADV_DONTNEED) != 0) fail("madvise");
  for (uint64_t i = 0; i < count; i++)
    versions[first + i] |= kDropped;
  dropped_pages += count;
}

/* An eighth of the memory is given back, in runs, and is zeroes from then on. */
static void drop_some(const struct Part* part, unsigned round) {
  for (uint64_t page = part->begin; page + kHolePages <= part->end; page += kHolePages)
    if (pages_mix(page, UINT64_C(1) << 32 | round) % 8 == 0) drop(page, kHolePages);
}

static void check_all(const struct Part* part, unsigned order) {
  uint64_t count = part->end - part->begin;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t at = i;                             /* forwards */
    if (order % 3 == 1) at = i * 104729 % count; /* no two neighbours after each other */
    if (order % 3 == 2) at = count - 1 - i;      /* backwards */
    check_page(part->begin + at);
  }
}

/* The log tells where the time went, and how far a guest came that did not get to its end. */
static void show_done(const struct Part* part, const char* phase, unsigned round) {
  printf("%.1f s: part %d, round %u: %s done\n", seconds() - start_seconds, part->begin != 0, round,
         phase);
}

static void* fill(void* argument) {
  const struct Part* part = argument;
  for (uint64_t page = part->begin; page < part->end; page++)
    write_page(page);
  show_done(part, "fill", 0);
  return NULL;
}

static void* change_and_check(void* argument) {
  const struct Part* part = argument;
  for (unsigned round = 1; round <= rounds; round++) {
    rewrite_some(part, round);
    drop_some(part, round);
    show_done(part, "rewrite", round);
    check_all(part, round);
    show_done(part, "check", round);
  }
  return NULL;
}

static unsigned long vmstat(const char* name) {
  FILE* file = fopen("/proc/vmstat", "r");
  if (!file) fail("/proc/vmstat");
  char key[64];
  unsigned long value, found = 0;
  while (fscanf(file, "%63s %lu", key, &value) == 2)
    if (strcmp(key, name) == 0) found = value;
  fclose(file);
  return found;
}

/* The kernel sends SIGBUS where a page could not be read back from the disk. */
static void on_bus_error(int signal) {
  (void)signal;
  static const char kMessage[] = "failed=SIGBUS: a page could not be read back\n";
  (void)!write(STDOUT_FILENO, kMessage, sizeof kMessage - 1);
  _exit(3);
}

static void in_parts(void* (*work)(void*), uint64_t pages) {
  struct Part parts[kThreads];
  for (unsigned i = 0; i < kThreads; i++) {
    parts[i].begin = pages * i / kThreads;
    parts[i].end = pages * (i + 1) / kThreads;
    errno = pthread_create(&parts[i].thread, NULL, work, &parts[i]);
    if (errno != 0) fail("pthread_create");
  }
  for (unsigned i = 0; i < kThreads; i++)
    pthread_join(parts[i].thread, NULL);
}

static void* map_or_fail(size_t bytes) {
  void* mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail("mmap");
  return mapped;
}

/* Everything but the first pages goes, then the disk; what was on it must be in memory again. */
static void take_disk_away(const char* device, uint64_t pages) {
  uint64_t kept = kKeptBytes / kPageBytes < pages ? kKeptBytes / kPageBytes : pages;
  if (munmap(page_at(kept), (size_t)(pages - kept) * kPageBytes) != 0) fail("munmap");
  unsigned long before = vmstat("pswpin");
  double start = seconds();
  if (swapoff(device) != 0) fail("swapoff");
  printf("swapoff=ok swapoff_seconds=%.1f swapoff_pages_in=%lu\n", seconds() - start,
         vmstat("pswpin") - before);
  check_all(&(struct Part){.begin = 0, .end = kept}, 1);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: guest_pages SWAP_DEVICE MIB ROUNDS SEED\n");
    return 64;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGBUS, on_bus_error);
  uint64_t pages = strtoull(argv[2], NULL, 10) * 256;
  rounds = (unsigned)strtoul(argv[3], NULL, 10);
  pages_init(strtoull(argv[4], NULL, 10));

  memory = map_or_fail((size_t)pages * kPageBytes);
  versions = map_or_fail((size_t)pages * sizeof *versions);
  if (mlock(versions, (size_t)pages * sizeof *versions) != 0) fail("mlock");

  start_seconds = seconds();
  in_parts(fill, pages);
  in_parts(change_and_check, pages);
  /* Only now are whole clusters of slots free, which the guest's kernel discards. What comes next
     is written where discards have been or still go on. */
  drop(0, pages);
  in_parts(fill, pages);
  /* The pages that are kept come first here, and so are mostly on the disk after it. */
  check_all(&(struct Part){.begin = 0, .end = pages}, 0);
  printf("pages=%" PRIu64 " rounds=%u work_seconds=%.1f\n", pages, rounds,
         seconds() - start_seconds);
  take_disk_away(argv[1], pages);

  printf("checked_pages=%lu written_pages=%lu dropped_pages=%lu\n", checked_pages, written_pages,
         dropped_pages);
  printf("wrong_words=%lu wrong_pages=%lu\n", wrong_words, wrong_pages);
  printf("pswpin=%lu pswpout=%lu\n", vmstat("pswpin"), vmstat("pswpout"));
  return wrong_words == 0 ? 0 : 1;
}

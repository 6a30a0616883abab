/* Runs inside a guest: fills more memory than the guest has, checks every word, and takes the swap
   disk away under it.

   guest_pages MODE SWAP_DEVICE MIB KEPT_MIB ROUNDS SEED

   MODE is what is done with the memory: rounds, once, random or exhaust. KEPT_MIB of it stay when
   the disk goes, and must fit into the guest without it. Prints lines of key=value. When most of
   the memory is on the disk it runs /at_full, if there is such a program. Exit status 0: all words
   were right, and the disk was taken away. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/swap.h>

#include "exhaust.h"
#include "memory.h"
#include "pages.h"
#include "process.h"

enum {
  kPagesAMib = (1 << 20) / kPageBytes,
  kHolePages = 64, /* what is dropped at once: larger than a read-ahead, smaller than a cluster */
};

static unsigned rounds;
static double start_seconds;

/* Half of the pages, far apart from each other, get a new content. */
static void rewrite_some(const struct Part* part, unsigned round) {
  uint64_t count = part->end - part->begin;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t page = part->begin + i * 7919 % count;
    if (pages_mix(page, round) % 2 == 0) memory_write(page);
  }
}

/* An eighth of the memory is given back, in runs, and is zeroes from then on. */
static void drop_some(const struct Part* part, unsigned round) {
  for (uint64_t page = part->begin; page + kHolePages <= part->end; page += kHolePages)
    if (pages_mix(page, UINT64_C(1) << 32 | round) % 8 == 0) memory_drop(page, kHolePages);
}

/* The log tells where the time went, and how far a guest came that did not get to its end. */
static void show_done(const struct Part* part, const char* phase, unsigned round) {
  printf("%.1f s: part %d, round %u: %s done\n", process_seconds() - start_seconds,
         part->begin != 0, round, phase);
}

static void fill(const struct Part* part) {
  for (uint64_t page = part->begin; page < part->end; page++)
    memory_write(page);
  show_done(part, "fill", 0);
}

static void change_and_check(const struct Part* part) {
  for (unsigned round = 1; round <= rounds; round++) {
    rewrite_some(part, round);
    drop_some(part, round);
    show_done(part, "rewrite", round);
    memory_check_part(part, round);
    show_done(part, "check", round);
  }
}

static void do_rounds(uint64_t pages) {
  memory_in_parts(fill, pages);
  process_run_hook("/at_full");
  memory_in_parts(change_and_check, pages);
  /* Only now are whole clusters of slots free, which the guest's kernel discards. What comes next
     is written where discards have been or still go on. */
  memory_drop(0, pages);
  memory_in_parts(fill, pages);
  /* The pages that are kept come first here, and so are mostly on the disk after it. */
  memory_check_part(&(struct Part){.begin = 0, .end = pages}, 0);
}

/* Each page once, with few faults: first those that were used last. What is kept is in the half
   that is checked last, and a part of it on the disk after it. */
static void check_halves(uint64_t pages) {
  memory_check_part(&(struct Part){.begin = pages / 2, .end = pages}, 2);
  memory_check_part(&(struct Part){.begin = 0, .end = pages / 2}, 0);
  show_done(&(struct Part){.begin = 0, .end = pages}, "check", 1);
}

static void rewrite_and_drop(const struct Part* part) {
  const struct Part quarter = {part->begin, part->begin + (part->end - part->begin) / 4};
  rewrite_some(&quarter, 1);
  drop_some(&quarter, 1);
  show_done(part, "rewrite", 1);
}

static void do_once(uint64_t pages) {
  memory_in_parts(fill, pages);
  process_run_hook("/at_full");
  memory_in_parts(rewrite_and_drop, pages);
  check_halves(pages);
}

/* Runs of pages at random places are rewritten, checked, given back or unmapped, until as many
   pages as there are have been touched ROUNDS times (half of them with 0). */
static void churn(const struct Part* part) {
  uint64_t count = part->end - part->begin, touched = 0;
  for (uint64_t step = 0; touched < (rounds ? rounds * count : count / 2); step++) {
    uint64_t bits = pages_mix(part->begin + step, UINT64_C(1) << 33);
    uint64_t length = 1 + (bits & 255) % (bits & 1024 ? 4 : kHolePages * 2);
    uint64_t first = part->begin + (bits >> 16) % (count - length);
    unsigned action = (unsigned)(bits >> 11) % 8;
    touched += length;
    if (action == 0) {
      memory_drop(first, length);
    } else if (action == 1) {
      memory_replace(first, length);
    } else {
      for (uint64_t page = first; page < first + length; page++) {
        if (action < 5)
          memory_write(page);
        else
          memory_check(page);
      }
    }
  }
  show_done(part, "churn", rounds);
}

static void do_random(uint64_t pages) {
  memory_in_parts(fill, pages);
  process_run_hook("/at_full");
  memory_in_parts(churn, pages);
  check_halves(pages);
}

/* Everything but the first pages goes, then the disk; what was on it must be in memory again. */
static void take_disk_away(const char* device, uint64_t pages, uint64_t kept) {
  if (kept < pages) memory_unmap_from(kept, pages);
  unsigned long before = process_vmstat("pswpin");
  double start = process_seconds();
  if (swapoff(device) != 0) process_fail("swapoff");
  printf("swapoff=ok swapoff_seconds=%.1f swapoff_pages_in=%lu\n", process_seconds() - start,
         process_vmstat("pswpin") - before);
  memory_check_part(&(struct Part){.begin = 0, .end = kept}, 1);
}

int main(int argc, char** argv) {
  if (argc != 7) {
    fprintf(stderr,
            "usage: guest_pages rounds|once|random|exhaust SWAP_DEVICE MIB KEPT_MIB ROUNDS SEED\n");
    return 64;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  process_tell_bus_errors();
  const char *mode = argv[1], *device = argv[2];
  uint64_t pages = strtoull(argv[3], NULL, 10) * kPagesAMib;
  uint64_t kept = strtoull(argv[4], NULL, 10) * kPagesAMib;
  rounds = (unsigned)strtoul(argv[5], NULL, 10);
  pages_init(strtoull(argv[6], NULL, 10));

  start_seconds = process_seconds();
  if (strcmp(mode, "exhaust") == 0) {
    pages = exhaust_memory(pages, kept);
  } else {
    memory_map(pages);
    if (strcmp(mode, "random") == 0)
      do_random(pages);
    else if (strcmp(mode, "once") == 0)
      do_once(pages);
    else
      do_rounds(pages);
  }
  printf("pages=%" PRIu64 " rounds=%u work_seconds=%.1f\n", pages, rounds,
         process_seconds() - start_seconds);
  take_disk_away(device, pages, kept);

  memory_report();
  printf("pswpin=%lu pswpout=%lu\n", process_vmstat("pswpin"), process_vmstat("pswpout"));
  return memory_wrong_words() == 0 ? 0 : 1;
}

#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "pages.h"
#include "process.h"

enum {
  kStepPages = 256,      /* after so many pages written some are checked */
  kChecksAStep = 64,     /* anywhere among those that are written */
  kBystanderScore = -900 /* the child is killed before its parent */
};

/* The child's progress: shared and locked, so that it can be read when the child is gone. */
struct Progress {
  uint64_t written_pages, checked_pages, wrong_words;
};

static void tell(volatile struct Progress* progress, uint64_t written) {
  progress->written_pages = written;
  progress->checked_pages = memory_checked_pages();
  progress->wrong_words = memory_wrong_words();
}

static void fill_and_check(volatile struct Progress* progress, uint64_t pages) {
  for (uint64_t page = 0; page < pages; page++) {
    memory_write(page);
    if (page % kStepPages != kStepPages - 1) continue;
    for (unsigned i = 0; i < kChecksAStep; i++)
      memory_check(pages_mix(page, i) % (page + 1));
    tell(progress, page + 1);
  }
  memory_check_part(&(struct Part){.begin = 0, .end = pages}, 1);
  tell(progress, pages);
}

static _Noreturn void run_child(volatile struct Progress* progress, int go, uint64_t pages) {
  char byte;
  process_set_oom_score(1000);
  pages_only_noise();
  memory_map(pages);
  if (read(go, &byte, 1) != 1) process_fail("pipe");
  fill_and_check(progress, pages);
  exit(memory_wrong_words() == 0 ? 0 : 1);
}

static const char* outcome_of(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return "killed";
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "survived" : "failed";
}

uint64_t exhaust_memory(uint64_t pages, uint64_t bystander_pages) {
  struct Progress* progress = mmap(NULL, kPageBytes, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
  if (progress == MAP_FAILED) process_fail("mmap");
  int go[2];
  if (pipe(go) != 0) process_fail("pipe");
  pid_t child = fork();
  if (child < 0) process_fail("fork");
  if (child == 0) run_child(progress, go[0], pages);

  process_set_oom_score(kBystanderScore);
  memory_map(bystander_pages);
  for (uint64_t page = 0; page < bystander_pages; page++)
    memory_write(page);
  if (write(go[1], "", 1) != 1) process_fail("pipe");
  int status;
  if (waitpid(child, &status, 0) != child) process_fail("waitpid");
  printf("child=%s child_written_pages=%" PRIu64 " child_checked_pages=%" PRIu64
         " child_wrong_words=%" PRIu64 "\n",
         outcome_of(status), progress->written_pages, progress->checked_pages,
         progress->wrong_words);
  process_run_hook("/at_full");
  memory_check_part(&(struct Part){.begin = 0, .end = bystander_pages}, 0);
  return bystander_pages;
}

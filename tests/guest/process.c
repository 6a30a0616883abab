#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void process_fail(const char* what) {
  printf("failed=%s: %s\n", what, strerror(errno));
  exit(2);
}

void process_check(int error, const char* what) {
  if (error == 0) return;
  errno = error;
  process_fail(what);
}

double process_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

unsigned long process_vmstat(const char* name) {
  FILE* file = fopen("/proc/vmstat", "r");
  if (!file) process_fail("/proc/vmstat");
  char key[64];
  unsigned long value, found = 0;
  while (fscanf(file, "%63s %lu", key, &value) == 2)
    if (strcmp(key, name) == 0) found = value;
  fclose(file);
  return found;
}

void process_set_oom_score(int score) {
  FILE* file = fopen("/proc/self/oom_score_adj", "w");
  if (!file || fprintf(file, "%d", score) < 0 || fclose(file) != 0) process_fail("oom_score_adj");
}

static void on_bus_error(int signal) {
  (void)signal;
  static const char kMessage[] = "failed=SIGBUS: a page could not be read back\n";
  (void)!write(STDOUT_FILENO, kMessage, sizeof kMessage - 1);
  _exit(3);
}

void process_tell_bus_errors(void) {
  signal(SIGBUS, on_bus_error);
}

void process_run_hook(const char* program) {
  if (access(program, X_OK) != 0) return;
  char* argv[] = {(char*)program, NULL};
  pid_t child;
  int status;
  /* Not fork(), which would copy page tables that are mostly about swapped pages. */
  process_check(posix_spawn(&child, program, NULL, NULL, argv, environ), program);
  if (waitpid(child, &status, 0) != child || status != 0) process_fail(program);
}

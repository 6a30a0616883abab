/* What the guest's program does besides its memory: ending with a reason, reading the kernel's
   figures, running the scenario's hook. */
#ifndef TUCK_TESTS_GUEST_PROCESS_H
#define TUCK_TESTS_GUEST_PROCESS_H

/* Prints what failed, with errno, and ends with status 2. */
_Noreturn void process_fail(const char* what);
/* The same for an error number that is not 0. */
void process_check(int error, const char* what);

double process_seconds(void);
/* A figure of /proc/vmstat. */
unsigned long process_vmstat(const char* name);
/* Of this process: how likely it is chosen when memory runs out, -1000 … 1000. */
void process_set_oom_score(int score);
/* A page that cannot be read back from the disk is a SIGBUS: says so, and ends with status 3. */
void process_tell_bus_errors(void);
/* Runs the program if there is one, and waits for it; a status other than 0 is a failure. */
void process_run_hook(const char* program);

#endif

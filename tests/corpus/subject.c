// Fills memory of each sort with known words, writes a line when done, and then one byte each time
// it reads one, so that the test can see whether it runs. Built without sanitizers, whose shadow
// memory is terabytes of address space. Usage: subject FILE, which is made, mapped and removed.
#define _GNU_SOURCE
#include "subject.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static void fill(uint64_t* at, uint32_t mark, uint32_t first, uint32_t pages) {
  const uint32_t words = kSubjectPageBytes / sizeof(uint64_t);
  for (uint32_t page = 0; page < pages; ++page) {
    for (uint32_t word = 0; word < words; ++word) {
      at[(uint64_t)page * words + word] = subject_word(mark, first + page, word);
    }
  }
}

static void* map(size_t pages, int flags, int fd) {
  void* at = mmap(NULL, pages * kSubjectPageBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  return at;
}

// Reads a byte of each page.
static void touch(const char* at, uint32_t pages) {
  for (uint32_t page = 0; page < pages; ++page)
    (void)*(const volatile char*)(at + (uint64_t)page * kSubjectPageBytes);
}

static void map_file(const char* path) {
  static uint64_t pages[kFilePages * kSubjectPageBytes / sizeof(uint64_t)];
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  fill(pages, kFileMark, 0, kFilePages);
  if (fd < 0 || write(fd, pages, sizeof(pages)) != (ssize_t)sizeof(pages)) {
    perror(path);
    exit(1);
  }
  // The copy in this process's own memory must not be mistaken for the file's pages.
  for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); ++i)
    pages[i] = 0;
  char* at = map(kFilePages, MAP_PRIVATE, fd);
  touch(at, kFilePages);
  fill((uint64_t*)(at + kWrittenFilePage * kSubjectPageBytes), kWrittenFileMark, kWrittenFilePage,
       1);
  unlink(path);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  fill(map(kPrivatePages, MAP_PRIVATE | MAP_ANONYMOUS, -1), kPrivateMark, 0, kPrivatePages);
  uint64_t* hidden = map(kHiddenPages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  fill(hidden, kHiddenMark, 0, kHiddenPages);
  mprotect(hidden, kHiddenPages * kSubjectPageBytes, PROT_NONE);
  fill(map(kSharedPages, MAP_SHARED | MAP_ANONYMOUS, -1), kSharedMark, 0, kSharedPages);
  map_file(argv[1]);
  touch(map(kReadOnlyTouchedPages, MAP_PRIVATE | MAP_ANONYMOUS, -1), kReadOnlyTouchedPages);
  if (write(1, "r", 1) != 1) return 1;
  char byte;
  while (read(0, &byte, 1) == 1 && write(1, &byte, 1) == 1) {
  }
  return 0;
}

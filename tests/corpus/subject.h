// The process whose memory capture_test copies: what it holds, known to both sides.
#ifndef TUCK_TESTS_CORPUS_SUBJECT_H
#define TUCK_TESTS_CORPUS_SUBJECT_H

#include <stdint.h>

enum {
  kSubjectPageBytes = 4096,
  kPrivatePages = 600,  // more than are read at once
  kHiddenPages = 3,     // private, then made inaccessible
  kSharedPages = 40,
  kFilePages = 8,  // privately mapped, of which one is written to
  kWrittenFilePage = 5,
  kReadOnlyTouchedPages = 50,  // never written: the shared zero page
  // Marks of the pages' contents.
  kPrivateMark = 1,
  kHiddenMark = 2,
  kSharedMark = 3,
  kFileMark = 4,
  kWrittenFileMark = 5,
};

// Word number word of page number page of the part with this mark: no two are equal.
static inline uint64_t subject_word(uint32_t mark, uint32_t page, uint32_t word) {
  return 0x7475636b00000000u + ((uint64_t)mark << 28) + ((uint64_t)page << 12) + word;
}

#endif

// Copying the memory of a running process: what would go to swap, and nothing else.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "base/base.h"
#include "bench/corpus/corpus_file.h"

namespace tuck::corpus {

struct CaptureOptions {
  // Stop the process meanwhile, so that the pages are of one moment. It is continued in any case,
  // unless it was stopped before.
  bool stop = true;
  // The capture ends with an error soon after this is set (by a signal handler, say).
  const std::atomic<bool>* cancelled = nullptr;
};

struct CaptureReport {
  uint64_t pages = 0;       // copied
  uint64_t mappings = 0;    // that had such pages
  uint64_t unreadable = 0;  // pages that could not be read; left out
};

// Appends the resident or swapped-out private anonymous pages of a process to out, in order of
// their addresses. Left out: pages of files and of shared memory, hugetlb, device mappings, the
// kernel's own (vdso, vvar), and the shared zero page where only reads have been. Pages on swap
// come back into memory by being read. Errors: no such process, no right to read it, it ended or
// would not stop, cancelled, and those of PageFileWriter.
Result<CaptureReport, Error> capture(pid_t pid, PageFileWriter& out,
                                     const CaptureOptions& options = {});

}  // namespace tuck::corpus

// Façade of bench/corpus/: page corpora, on which tests and benchmarks work.
//
//   corpus      a file NAME.pages of raw 4 KiB pages, back to back, no header
//   captured    copied out of a real process, in the order of its addresses
//   synthetic   generated from a seed, with the statistics of captured ones (README.md has both)
//
// Whoever prints a figure that was measured on synthetic pages says so beside it.
#pragma once

#include "bench/corpus/capture.h"      // IWYU pragma: export
#include "bench/corpus/corpus_file.h"  // IWYU pragma: export
#include "bench/corpus/statistics.h"   // IWYU pragma: export
#include "bench/corpus/synthetic.h"    // IWYU pragma: export

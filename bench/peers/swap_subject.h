// What tuck-swap-subject says and is told: a program whose memory the kernel swaps, so that what
// this costs can be timed where it happens. Commands and answers are lines, on its standard input
// and output; each command has one answer.
//
//   fill BYTES           maps so much memory and fills it with the bytes that follow the line
//   pageout              has the kernel swap all of it out
//   fault order|random   reads a word of each page, by address or in a random order
//   unmap                gives the memory back
#pragma once

#include <cstdint>
#include <string>

#include "base/base.h"

namespace tuck::bench {

struct SwapAnswer {
  uint64_t ns = 0;          // what the command was about, and nothing else
  uint64_t bytes = 0;       // that it filled, swapped out, brought back, or gave back swapped
  uint64_t swap_bytes = 0;  // of the subject, swapped out afterwards
  uint64_t huge_bytes = 0;  // of its memory, in folios of 2 MiB afterwards
  // Folios of the wanted size that were filled, swapped out or brought back whole, as the kernel
  // counts them for the whole machine; 0 for folios of one page, and where it does not count.
  uint64_t folios = 0;
  uint64_t fallbacks = 0;  // the same, that could not be had whole

  bool operator==(const SwapAnswer&) const = default;
};

// "done ns=12 bytes=4096 ..."
std::string to_line(const SwapAnswer& answer);
// "failed MESSAGE"; the message has to be one line.
std::string to_line(const Error& error);
// Errors: that of the line, or it is no answer.
Result<SwapAnswer, Error> parse_swap_answer(const std::string& line);

}  // namespace tuck::bench

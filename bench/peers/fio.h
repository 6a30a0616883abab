// fio as an NBD client: one connection that keeps so many requests open for so long.
#pragma once

#include <cstdint>
#include <string>

#include "base/base.h"

namespace tuck::bench {

struct FioJob {
  const char* rw = "";  // fio's name of the pattern: "randread", "write"
  const char* bs = "";  // fio's name of the block size: "4k"
  unsigned depth = 1;
};

struct FioFigures {
  double iops = 0;
  double mb_s = 0;    // 10^6 bytes
  double p50_us = 0;  // from a request's submission to its completion
  double p99_us = 0;
};

// On the first bytes of the disk at uri. Errors: fio or its nbd engine is missing, or it failed.
Result<FioFigures, Error> run_fio(const FioJob& job, const std::string& uri, uint64_t bytes,
                                  double seconds);

}  // namespace tuck::bench

// The kernel's swap onto zram in the table codecs: pageout, faults and munmap of the same pages.
#pragma once

#include <vector>

#include "bench/frame/frame.h"
#include "bench/peers/zram_swap.h"
#include "bench/tables/codecs_zram_common.h"

namespace tuck::bench {

// One contestant for each size of folios. The device and the programs are there for as long as this
// is; swap is on, and the kernel's settings are changed, in a contestant's own turns only.
class ZramSwapInCodecs {
 public:
  // The pages outlive it.
  explicit ZramSwapInCodecs(const AlignedPages& pages);

  void add_contestants(std::vector<Contestant>& contestants);
  void add_results(Report& report, const Measured& measured) const;

 private:
  struct Subject {
    unsigned folio_kib;
    Result<SwapSubject, Error> program;
  };
  Result<Figures, Error> turn(Subject& subject);

  const AlignedPages& pages_;
  Result<ZramSwap, Error> swap_;
  std::vector<Subject> subjects_;
};

}  // namespace tuck::bench

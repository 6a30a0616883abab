// The kernel's zram in the table codecs, on the same pages: as a block device, and as swap.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/frame/frame.h"
#include "bench/peers/zram_device.h"
#include "bench/tables/codecs_zram_common.h"
#include "bench/tables/codecs_zram_swap.h"

namespace tuck::bench {

// zram's contestants and what they leave. Outlives the rounds. Where there is no zram, or no swap,
// the first turn fails, and the rounds skip the contestant with the reason. To be made before the
// engines: it starts programs (SwapSubject says why that matters).
class ZramInCodecs {
 public:
  // Null with Options::peers off, or without pages. The pages are those that tuck has in the corpus
  // "all".
  static std::unique_ptr<ZramInCodecs> create(const Context& context);

  void add_contestants(std::vector<Contestant>& contestants);
  // Rows, and zram's times over those of tuck: its contestant's name.
  void add_results(Report& report, const Measured& measured, const std::string& tuck) const;

 private:
  ZramInCodecs(const std::vector<const std::byte*>& pages, double seconds);
  Result<Figures, Error> block_turn();
  Status open_device();

  double seconds_;
  AlignedPages pages_;
  AlignedPages loaded_;  // room for one request
  std::optional<ZramDevice> device_;
  ZramSwapInCodecs swap_;
};

}  // namespace tuck::bench

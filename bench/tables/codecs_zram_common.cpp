#include "bench/tables/codecs_zram_common.h"

#include <cstring>

namespace tuck::bench {

void add_zram_ratio(Figures& figures, const ZramDevice& device) {
  const auto memory = device.memory();
  if (!memory || memory->compr_data_size == 0) return;
  figures["ratio"] =
      static_cast<double>(memory->orig_data_size) / static_cast<double>(memory->compr_data_size);
}

Row zram_row(const std::string& subject, const Series& ratio) {
  Row row;
  row.add("corpus", "all").add("codec", kZramAlgorithm).add("unit_kib", int64_t{4});
  row.add("subject", subject).add("ratio", ratio);
  return row;
}

AlignedPages::AlignedPages(const std::vector<const std::byte*>& pages)
    : AlignedPages(pages.size()) {
  for (size_t i = 0; i < pages.size(); ++i)
    std::memcpy(pages_[i].bytes, pages[i], kPageSize);
}

}  // namespace tuck::bench

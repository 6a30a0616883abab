// What the tables density and churn share: the heaps that they fill, with what, and how it is
// counted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/frame/frame.h"
#include "bench/frame/mapped_file.h"
#include "bench/peers/heap.h"
#include "bench/peers/scratch_folder.h"
#include "bench/peers/zram_device.h"

namespace tuck::bench {

// Contestants, by name. "tuck" has all settings as they come.
inline constexpr const char* kTuck = "tuck";
inline constexpr const char* kTuckLz4 = "tuck lz4";
inline constexpr const char* kZram = "zram";

struct NamedHeap {
  std::string name;
  Heap heap;
};
// The engine's, and with peers the mallocs'.
std::vector<NamedHeap> heaps(bool peers);

// The run's pages without the same-filled ones, which take no object anywhere, so many times over
// that lz4 leaves 512 MiB of them or more; one time only in a run whose --seconds are under 0.5.
class FillContent {
 public:
  static Result<FillContent, Error> create(Context& context);
  const HeapContent& files() const noexcept { return files_; }
  // Enough of them to make claims about.
  bool is_whole() const noexcept { return whole_; }
  // Of all copies, uncompressed.
  uint64_t bytes() const noexcept { return pages().size() * files_.copies; }
  // One copy, at a page's boundary.
  std::span<const std::byte> pages() const noexcept { return pages_.bytes(); }

 private:
  FillContent(ScratchFolder folder, HeapContent files, MappedFile pages, bool whole) noexcept
      : folder_(std::move(folder)),
        files_(std::move(files)),
        pages_(std::move(pages)),
        whole_(whole) {}

  ScratchFolder folder_;
  HeapContent files_;
  MappedFile pages_;
  bool whole_;
};

// A new device with all of the content in it.
Result<ZramDevice, Error> filled_zram(const FillContent& content);

// payload_mb, resident_mb (10^6 bytes) and resident_over_payload, prefix before each.
void add_memory(Figures& figures, uint64_t payload, uint64_t resident,
                const std::string& prefix = "");

// NAME_resident_over_payload of the summary is named so.
std::string summary_name(const std::string& contestant);

}  // namespace tuck::bench

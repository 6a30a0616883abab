// Where the pool's memory went: every resident byte has exactly one line here.
#pragma once

#include <cstdint>
#include <vector>

namespace tuck::allocator {

struct ClassLedger {
  uint32_t object_bytes = 0;   // the class: header included, what an object costs
  uint32_t zspage_frames = 0;  // 4 KiB frames a zspage
  uint32_t objects_per_zspage = 0;
  uint64_t zspages = 0;
  uint64_t objects = 0;        // allocated
  uint64_t payload_bytes = 0;  // of those
  uint64_t free_objects = 0;   // room in the zspages
};

struct Ledger {
  uint64_t payload_bytes = 0;        // compressed bytes
  uint64_t header_bytes = 0;         // 8 an object
  uint64_t rounding_bytes = 0;       // up to the class size
  uint64_t tail_bytes = 0;           // behind the last object of a zspage
  uint64_t free_object_bytes = 0;    // room in zspages
  uint64_t reserve_bytes = 0;        // frames populated ahead of use
  uint64_t metadata_bytes = 0;       // page map, block and zspage descriptors
  std::vector<ClassLedger> classes;  // those with zspages, smallest first

  // The frames of the pool that the kernel counts as resident.
  uint64_t pool_bytes() const noexcept {
    return payload_bytes + header_bytes + rounding_bytes + tail_bytes + free_object_bytes +
           reserve_bytes;
  }
  uint64_t resident_bytes() const noexcept { return pool_bytes() + metadata_bytes; }
};

}  // namespace tuck::allocator

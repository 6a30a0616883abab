// The table of size classes.
//
// Nominal sizes: 32 B to 1 KiB by 16, to 4 KiB by 32, one for a raw page with its header, and above
// that geometric by 1/32. For each a zspage length is chosen, and the class then takes
// the whole share of a zspage that one of its objects has, so that nominal sizes that would
// cut the zspage into the same number of objects are one class (as zsmalloc merges classes).
#pragma once

#include <array>
#include <cstdint>

#include "allocator/allocator.h"

namespace tuck::allocator {

inline constexpr uint32_t kObjectBytesMin = 32;
inline constexpr uint32_t kZspageFramesMax = 64;
inline constexpr uint32_t kZspageObjectsMax = 256;
inline constexpr uint32_t kSizeClassesMax = 255;

struct SizeClass {
  uint32_t object_bytes = 0;  // a multiple of 8, header included
  uint16_t frames = 0;        // of a zspage
  uint16_t objects = 0;       // of a zspage
  // object index = (byte offset / 8) * reciprocal >> 32, exact for offsets within a zspage.
  uint32_t reciprocal = 0;

  uint32_t zspage_bytes() const noexcept { return frames * kFrameSize; }
  uint32_t tail_bytes() const noexcept { return zspage_bytes() - objects * object_bytes; }
  // Of the object that begins at this offset in its zspage.
  uint32_t object_index(uint32_t offset_bytes) const noexcept {
    return static_cast<uint32_t>((static_cast<uint64_t>(offset_bytes / 8) * reciprocal) >> 32);
  }
};

class SizeClasses {
 public:
  SizeClasses() noexcept;

  uint32_t count() const noexcept { return count_; }
  const SizeClass& operator[](uint32_t index) const noexcept { return classes_[index]; }
  // The smallest class that holds bytes (header included; 1 … kObjectBytesMax).
  uint32_t index_of(uint32_t bytes) const noexcept { return by_size_[(bytes + 7) / 8]; }

 private:
  uint32_t count_ = 0;
  std::array<SizeClass, kSizeClassesMax> classes_{};
  std::array<uint8_t, kObjectBytesMax / 8 + 1> by_size_{};
};

}  // namespace tuck::allocator

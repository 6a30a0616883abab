#include "allocator/size_class.h"

#include <algorithm>

namespace tuck::allocator {
namespace {

// A zspage as short as can be whose tail is at most this share; 1/128 costs less than the rounding
// to classes does, and longer zspages would leave more half-empty ones behind.
constexpr uint32_t kTailShare = 128;

SizeClass choose_zspage(uint32_t bytes) {
  SizeClass best;
  uint64_t best_tail = UINT64_MAX;  // scaled by the best length, to compare shares without division
  for (uint32_t frames = 1; frames <= kZspageFramesMax; ++frames) {
    const uint32_t zspage = frames * kFrameSize;
    const uint32_t objects = zspage / bytes;
    if (objects == 0) continue;
    if (objects > kZspageObjectsMax) break;
    const uint64_t tail = zspage - objects * bytes;
    if (best.frames == 0 || tail * best.frames < best_tail * frames) {
      best.frames = static_cast<uint16_t>(frames);
      best.objects = static_cast<uint16_t>(objects);
      best_tail = tail;
    }
    if (tail * kTailShare <= zspage) break;
  }
  best.object_bytes = best.frames * kFrameSize / best.objects / 8 * 8;
  // Rounded up; the error stays below 1/2^32 × 2^15 eighths, far below one object.
  best.reciprocal = static_cast<uint32_t>((1ull << 32) / (best.object_bytes / 8) + 1);
  return best;
}

uint32_t next_nominal(uint32_t bytes) {
  constexpr uint32_t kRawPage = kPageSize + sizeof(ObjectHeader);
  if (bytes < 1024) return bytes + 16;
  if (bytes < kPageSize) return bytes + 32;
  if (bytes < kRawPage) return kRawPage;
  return (bytes + bytes / 32 + 7) / 8 * 8;
}

}  // namespace

SizeClasses::SizeClasses() noexcept {
  uint32_t nominal = kObjectBytesMin;
  uint32_t filled = 0;  // by_size_ entries
  for (;;) {
    nominal = std::min(nominal, kObjectBytesMax);
    const SizeClass chosen = choose_zspage(nominal);
    TUCK_CHECK(count_ < kSizeClassesMax);
    classes_[count_] = chosen;
    const uint32_t upto = std::min(chosen.object_bytes, kObjectBytesMax) / 8;
    for (; filled <= upto; ++filled)
      by_size_[filled] = static_cast<uint8_t>(count_);
    ++count_;
    if (chosen.object_bytes >= kObjectBytesMax) break;
    while (nominal <= chosen.object_bytes)
      nominal = next_nominal(nominal);
  }
}

}  // namespace tuck::allocator

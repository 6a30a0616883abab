// The words shared by all layers: pages, slots, areas.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tuck {

// A page of user data. 16 and 64 KiB pages are not supported yet; nothing may assume that they
// never will be, so every use goes through these two.
inline constexpr uint32_t kPageShift = 12;
inline constexpr uint32_t kPageSize = 1u << kPageShift;

// The largest folio: 2 MiB of 4 KiB pages.
inline constexpr uint32_t kFolioOrderMax = 9;

// One page's place in a swap area. 32 bits: 16 TiB an area.
enum class SlotIndex : uint32_t {};

constexpr uint32_t value(SlotIndex slot) {
  return static_cast<uint32_t>(slot);
}
constexpr SlotIndex operator+(SlotIndex slot, uint32_t pages) {
  return SlotIndex{value(slot) + pages};
}
constexpr uint32_t operator-(SlotIndex end, SlotIndex begin) {
  return value(end) - value(begin);
}

// A swap area of an engine: one NBD export, one address space's swap, one pager region.
enum class AreaId : uint16_t {};

constexpr uint16_t value(AreaId area) {
  return static_cast<uint16_t>(area);
}

}  // namespace tuck

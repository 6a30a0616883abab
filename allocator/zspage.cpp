#include "allocator/zspage.h"

#include <algorithm>
#include <utility>

namespace tuck::allocator {

void Zspage::reset(uint32_t frame, uint8_t class_index, uint32_t objects) noexcept {
  for (uint32_t word = 0; word < room.size(); ++word) {
    const uint32_t from = word * 64;
    const uint32_t bits = objects <= from ? 0 : objects - from;
    room[word] = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  }
  first_frame = frame;
  next = previous = kNoZspage;
  used = 0;
  size_class = class_index;
  group = 0;
}

uint32_t Zspage::take() noexcept {
  for (uint32_t word = 0; word < room.size(); ++word) {
    if (room[word] == 0) continue;
    const auto bit = static_cast<uint32_t>(std::countr_zero(room[word]));
    room[word] &= room[word] - 1;
    ++used;
    return word * 64 + bit;
  }
  check_failed("a zspage that is asked for an object has room", __FILE__, __LINE__);
}

void Zspage::give(uint32_t index) noexcept {
  uint64_t& word = room[index / 64];
  const uint64_t bit = 1ull << (index % 64);
  // A double free would hand one place to two owners: never let it pass.
  TUCK_CHECK((word & bit) == 0);
  word |= bit;
  --used;
}

uint32_t Zspage::room_count() const noexcept {
  uint32_t count = 0;
  for (const uint64_t word : room)
    count += static_cast<uint32_t>(std::popcount(word));
  return count;
}

ZspageTable::ZspageTable(ReservedArray<Zspage> zspages, uint32_t count_max) noexcept
    : count_max_(count_max), zspages_(std::move(zspages)) {}

Result<ZspageId> ZspageTable::get(bool populated_only) noexcept {
  for (;;) {
    size_t had = 0;
    {
      MutexLock guard(lock_);
      if (free_ != kNoZspage) {
        const ZspageId id = free_;
        free_ = zspages_[id].next;
        --free_count_;
        return id;
      }
      if (count_ == count_max_) return Errc::no_space;
      if ((count_ + size_t{1}) * sizeof(Zspage) <= populated_bytes_) return count_++;
      if (populated_only) return starved_ ? Errc::no_space : Errc::pending;
      had = populated_bytes_;
    }
    if (const Errc code = grow(had); code != Errc::ok) return code;
  }
}

void ZspageTable::put(ZspageId id) noexcept {
  MutexLock guard(lock_);
  zspages_[id].next = free_;
  free_ = id;
  ++free_count_;
}

bool ZspageTable::keep_ahead(uint64_t count) noexcept {
  bool changed = false;
  for (;;) {
    size_t had = 0;
    {
      MutexLock guard(lock_);
      const uint64_t unused = populated_bytes_ / sizeof(Zspage) - count_ + free_count_;
      if (unused >= count || populated_bytes_ == zspages_.size_bytes()) return changed;
      had = populated_bytes_;
    }
    if (grow(had) != Errc::ok) return changed;
    changed = true;
  }
}

Errc ZspageTable::grow(size_t had) noexcept {
  MutexLock growing(growth_);
  {
    MutexLock guard(lock_);
    if (populated_bytes_ > had) return Errc::ok;
  }
  const size_t upto = std::min(had + kGrowBytes, zspages_.size_bytes());
  const Errc code = zspages_.populate_bytes(had, upto);
  MutexLock guard(lock_);
  starved_ = code != Errc::ok;
  if (code == Errc::ok) populated_bytes_ = upto;
  return code;
}

uint64_t ZspageTable::resident_bytes() const noexcept {
  MutexLock guard(lock_);
  return populated_bytes_;
}

}  // namespace tuck::allocator

// The ledger, and the walk that checks it against everything else.
#include <array>

#include "allocator/allocator.h"
#include "allocator/allocator_impl.h"

namespace tuck::allocator {

Ledger Allocator::ledger() const {
  Ledger ledger;
  for (uint32_t i = 0; i < impl_->classes.count(); ++i) {
    const SizeClass& size_class = impl_->classes[i];
    const ClassState& state = impl_->states[i];
    ClassLedger line;
    {
      MutexLock guard(state.lock);
      line.zspages = state.zspages;
      line.objects = state.objects;
      line.payload_bytes = state.payload_bytes;
    }
    if (line.zspages == 0) continue;
    line.object_bytes = size_class.object_bytes;
    line.zspage_frames = size_class.frames;
    line.objects_per_zspage = size_class.objects;
    line.free_objects = line.zspages * size_class.objects - line.objects;

    const uint64_t headers = line.objects * sizeof(ObjectHeader);
    ledger.payload_bytes += line.payload_bytes;
    ledger.header_bytes += headers;
    ledger.rounding_bytes += line.objects * size_class.object_bytes - headers - line.payload_bytes;
    ledger.tail_bytes += line.zspages * size_class.tail_bytes();
    ledger.free_object_bytes += line.free_objects * size_class.object_bytes;
    ledger.classes.push_back(line);
  }
  ledger.reserve_bytes = impl_->arena.ready_frames() * kFrameSize;
  ledger.metadata_bytes = impl_->arena.metadata_bytes() + impl_->zspages.resident_bytes();
  return ledger;
}

namespace {

// The zspages of one class that are in lists: each in the right one, counts and map agreeing.
struct Walked {
  uint64_t zspages = 0;
  uint64_t objects = 0;
};

}  // namespace

void Allocator::verify() const {
  const Impl& impl = *impl_;
  const uint64_t frames_in_use = impl.arena.verify();
  uint64_t frames = 0;
  for (uint32_t i = 0; i < impl.classes.count(); ++i) {
    const SizeClass& size_class = impl.classes[i];
    const ClassState& state = impl.states[i];
    MutexLock guard(state.lock);
    Walked partial;
    for (uint32_t group = 0; group < kFullnessGroups; ++group) {
      ZspageId id = state.head[group];
      TUCK_CHECK((id != kNoZspage) == ((state.groups >> group & 1) != 0));
      for (ZspageId previous = kNoZspage; id != kNoZspage;
           previous = id, id = impl.zspages[id].next) {
        const Zspage& zspage = impl.zspages[id];
        TUCK_CHECK(zspage.previous == previous);
        TUCK_CHECK(zspage.group == group && zspage.size_class == i);
        TUCK_CHECK(zspage.used != 0 && zspage.used < size_class.objects);
        TUCK_CHECK(zspage.used + zspage.room_count() == size_class.objects);
        TUCK_CHECK(Zspage::group_of(zspage.used, size_class.objects) == group);
        for (uint32_t f = 0; f < size_class.frames; ++f) {
          const PageMapWord word = impl.arena.page_map(zspage.first_frame + f);
          TUCK_CHECK(word.in_use() && word.zspage() == id && word.size_class() == i);
        }
        ++partial.zspages;
        partial.objects += zspage.used;
      }
    }
    // The rest are full: objects and frames of the class have to come out even with them.
    TUCK_CHECK(state.zspages >= partial.zspages);
    const uint64_t full = state.zspages - partial.zspages;
    TUCK_CHECK(state.objects == partial.objects + full * size_class.objects);
    TUCK_CHECK(state.payload_bytes + state.objects * sizeof(ObjectHeader) <=
               state.objects * size_class.object_bytes);
    frames += state.zspages * size_class.frames;
  }
  TUCK_CHECK(frames == frames_in_use);
  TUCK_CHECK(ledger().pool_bytes() == impl.arena.populated_frames() * kFrameSize);
}

}  // namespace tuck::allocator

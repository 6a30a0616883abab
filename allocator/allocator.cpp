#include "allocator/allocator.h"

#include <algorithm>
#include <new>
#include <optional>

#include "allocator/allocator_impl.h"

namespace tuck::allocator {
namespace {

uint64_t whole_frames(uint64_t bytes) {
  return bytes / kFrameSize;
}

FrameArena::Options arena_options(const AllocatorOptions& options) {
  FrameArena::Options arena;
  arena.frames = whole_frames(options.address_space_bytes);
  arena.limit_frames = options.limit_bytes == 0 ? arena.frames : whole_frames(options.limit_bytes);
  arena.reserve_frames = std::min(whole_frames(options.reserve_bytes), arena.limit_frames);
  arena.ready_frames_only = options.empty_reserve != EmptyReserve::populate;
  return arena;
}

}  // namespace

// --- Making and ending ---------------------------------------------------------------------------

Allocator::Impl::Impl(const AllocatorOptions& o, ReservedArray<std::byte> frames,
                      ReservedArray<Block> blocks, ReservedArray<PageMapWord> page_map,
                      ReservedArray<Zspage> table) noexcept
    : options(o),
      pool(std::move(frames)),
      base(pool.bytes()),
      arena(*o.memory, base, std::move(blocks), std::move(page_map), arena_options(o)),
      zspages(std::move(table), static_cast<uint32_t>(whole_frames(o.address_space_bytes))) {
  for (ClassState& state : states) {
    MutexLock guard(state.lock);
    state.head.fill(kNoZspage);
  }
}

Allocator::Allocator(std::unique_ptr<Impl> impl) noexcept
    : impl_(std::move(impl)), base_(impl_->base) {}

Allocator::~Allocator() = default;

Result<std::unique_ptr<Allocator>, Error> Allocator::create(const AllocatorOptions& requested) {
  constexpr uint64_t kAddressSpaceMax = 1ull << 40;
  AllocatorOptions options = requested;
  options.address_space_bytes =
      std::min((options.address_space_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes,
               kAddressSpaceMax);
  const uint64_t frames = whole_frames(options.address_space_bytes);
  auto blocks =
      ReservedArray<Block>::create(*options.memory, frames / kBlockFrames, "frame blocks");
  if (!blocks) return blocks.error();
  auto page_map = ReservedArray<PageMapWord>::create(*options.memory, frames, "the page map");
  if (!page_map) return page_map.error();
  auto zspages = ReservedArray<Zspage>::create(*options.memory, frames, "zspage descriptors");
  if (!zspages) return zspages.error();
  auto pool =
      ReservedArray<std::byte>::create(*options.memory, options.address_space_bytes, "the pool");
  if (!pool) return pool.error();
  return std::unique_ptr<Allocator>(new Allocator(std::make_unique<Impl>(
      options, std::move(*pool), std::move(*blocks), std::move(*page_map), std::move(*zspages))));
}

// --- Zspages of a class --------------------------------------------------------------------------

void Allocator::Impl::link(ClassState& state, ZspageId id) noexcept {
  Zspage& zspage = zspages[id];
  zspage.previous = kNoZspage;
  zspage.next = state.head[zspage.group];
  if (zspage.next != kNoZspage) zspages[zspage.next].previous = id;
  state.head[zspage.group] = id;
  state.groups |= 1u << zspage.group;
}

void Allocator::Impl::unlink(ClassState& state, ZspageId id) noexcept {
  Zspage& zspage = zspages[id];
  if (zspage.next != kNoZspage) zspages[zspage.next].previous = zspage.previous;
  if (zspage.previous != kNoZspage) {
    zspages[zspage.previous].next = zspage.next;
  } else {
    state.head[zspage.group] = zspage.next;
    if (zspage.next == kNoZspage) state.groups &= ~(1u << zspage.group);
  }
}

void Allocator::Impl::regroup(ClassState& state, ZspageId id) noexcept {
  Zspage& zspage = zspages[id];
  const uint8_t group = Zspage::group_of(zspage.used, classes[zspage.size_class].objects);
  if (group == zspage.group) return;
  if (zspage.group != kGroupFull) unlink(state, id);
  zspage.group = group;
  if (group != kGroupFull) link(state, id);
}

Result<ZspageId> Allocator::Impl::make_zspage(uint32_t class_index) noexcept {
  const SizeClass& size_class = classes[class_index];
  // Nobody waits under EmptyReserve::refuse: what is pending is not there.
  const auto told = [this](Errc code) {
    const bool refused = options.empty_reserve == EmptyReserve::refuse && code == Errc::pending;
    return refused ? Errc::no_space : code;
  };
  const auto id = zspages.get(options.empty_reserve != EmptyReserve::populate);
  if (!id) return told(id.error());
  const auto frame = arena.take_run(size_class.frames);
  if (!frame) {
    zspages.put(*id);
    return told(frame.error());
  }
  zspages[*id].reset(*frame, static_cast<uint8_t>(class_index), size_class.objects);
  // Before any entry points into the frames: whoever publishes one does so with release, after
  // this.
  for (uint32_t i = 0; i < size_class.frames; ++i) {
    arena.page_map(*frame + i) = PageMapWord(*id, class_index);
  }
  return *id;
}

void Allocator::Impl::drop_zspage(ZspageId id) noexcept {
  const Zspage& zspage = zspages[id];
  arena.give_run(zspage.first_frame, classes[zspage.size_class].frames);
  zspages.put(id);
}

// --- Objects -------------------------------------------------------------------------------------

uint64_t Allocator::Impl::take_object(ClassState& state, uint32_t class_index) noexcept {
  // The fullest zspage that has room: the sparse ones get a chance to run empty.
  const auto group = static_cast<uint32_t>(std::bit_width(state.groups)) - 1;
  const ZspageId id = state.head[group];
  Zspage& zspage = zspages[id];
  const uint32_t index = zspage.take();
  ++state.objects;
  regroup(state, id);
  return (static_cast<uint64_t>(zspage.first_frame) * kFrameSize +
          static_cast<uint64_t>(index) * classes[class_index].object_bytes) /
         8;
}

// An object of the class, from *fresh if nothing else has room; *fresh is then used up.
std::optional<uint64_t> Allocator::Impl::try_take(uint32_t class_index, uint32_t payload_bytes,
                                                  Owner owner, ZspageId* fresh) noexcept {
  ClassState& state = states[class_index];
  MutexLock guard(state.lock);
  if (state.groups == 0 && *fresh != kNoZspage) {
    ++state.zspages;
    link(state, *fresh);
    *fresh = kNoZspage;
  }
  if (state.groups == 0) return std::nullopt;
  const uint64_t location = take_object(state, class_index);
  state.payload_bytes += payload_bytes;
  // Ours alone until it is published.
  *reinterpret_cast<ObjectHeader*>(base + location * 8) = ObjectHeader(owner, state.generation++);
  return location;
}

// At the limit: a place in a class of up to twice the size is better than a refusal.
std::optional<uint64_t> Allocator::Impl::take_larger(uint32_t class_index, uint32_t payload_bytes,
                                                     Owner owner) noexcept {
  const uint32_t most = classes[class_index].object_bytes * 2;
  ZspageId none = kNoZspage;
  for (uint32_t i = class_index + 1; i < classes.count() && classes[i].object_bytes <= most; ++i) {
    if (const auto location = try_take(i, payload_bytes, owner, &none)) return location;
  }
  return std::nullopt;
}

Result<uint64_t> Allocator::Impl::allocate(uint32_t payload_bytes, Owner owner) noexcept {
  TUCK_DCHECK(payload_bytes > 0 && payload_bytes + sizeof(ObjectHeader) <= kObjectBytesMax);
  const uint32_t class_index =
      classes.index_of(payload_bytes + static_cast<uint32_t>(sizeof(ObjectHeader)));
  ZspageId fresh = kNoZspage;
  for (;;) {
    if (const auto location = try_take(class_index, payload_bytes, owner, &fresh)) {
      // Another thread was quicker to bring a zspage.
      if (fresh != kNoZspage) drop_zspage(fresh);
      return *location;
    }
    TUCK_SYNC_POINT("allocator.allocate.class_full");
    const auto made = make_zspage(class_index);
    if (made) {
      fresh = *made;
      continue;
    }
    if (made.error() == Errc::no_space) {
      if (const auto location = take_larger(class_index, payload_bytes, owner)) return *location;
    }
    return made.error();
  }
}

void Allocator::Impl::free_object(ClassState& state, const Object& object,
                                  ZspageId* emptied) noexcept {
  const ZspageId id = page_map_of(object.location).zspage();
  Zspage& zspage = zspages[id];
  const SizeClass& size_class = classes[zspage.size_class];
  const uint64_t start = static_cast<uint64_t>(zspage.first_frame) * kFrameSize;
  zspage.give(size_class.object_index(static_cast<uint32_t>(object.location * 8 - start)));
  --state.objects;
  state.payload_bytes -= object.payload_bytes;
  if (zspage.used != 0) {
    regroup(state, id);
    return;
  }
  if (zspage.group != kGroupFull) unlink(state, id);
  --state.zspages;
  zspage.next = *emptied;
  *emptied = id;
}

void Allocator::Impl::free(std::span<const Object> objects) noexcept {
  // Sorted by class in pieces that fit the stack: count, place, then one lock a class.
  constexpr size_t kPiece = 1024;
  while (!objects.empty()) {
    const auto piece = objects.first(std::min(objects.size(), kPiece));
    objects = objects.subspan(piece.size());
    std::array<uint16_t, kSizeClassesMax + 1> start{};
    std::array<uint8_t, kPiece> class_of;
    std::array<uint16_t, kPiece> order;
    for (size_t i = 0; i < piece.size(); ++i) {
      const PageMapWord word = page_map_of(piece[i].location);
      TUCK_CHECK(word.in_use());
      class_of[i] = static_cast<uint8_t>(word.size_class());
      ++start[class_of[i] + 1u];
    }
    for (size_t c = 1; c < start.size(); ++c)
      start[c] = static_cast<uint16_t>(start[c] + start[c - 1]);
    for (size_t i = 0; i < piece.size(); ++i)
      order[start[class_of[i]]++] = static_cast<uint16_t>(i);

    ZspageId emptied = kNoZspage;
    for (size_t i = 0; i < piece.size();) {
      const uint8_t class_index = class_of[order[i]];
      ClassState& state = states[class_index];
      MutexLock guard(state.lock);
      for (; i < piece.size() && class_of[order[i]] == class_index; ++i) {
        free_object(state, piece[order[i]], &emptied);
      }
    }
    TUCK_SYNC_POINT("allocator.free.unlocked");
    while (emptied != kNoZspage) {
      const ZspageId id = emptied;
      emptied = zspages[id].next;
      drop_zspage(id);
    }
  }
}

// --- The façade ----------------------------------------------------------------------------------

Result<uint64_t> Allocator::allocate(uint32_t payload_bytes, Owner owner) noexcept {
  return impl_->allocate(payload_bytes, owner);
}

void Allocator::free(std::span<const Object> objects) noexcept {
  impl_->free(objects);
}

uint32_t Allocator::object_bytes(uint32_t payload_bytes) const noexcept {
  const uint32_t bytes = payload_bytes + static_cast<uint32_t>(sizeof(ObjectHeader));
  return impl_->classes[impl_->classes.index_of(bytes)].object_bytes;
}

bool Allocator::maintain() noexcept {
  bool changed = impl_->arena.maintain();
  // A ready frame is of no use without a descriptor: at most one zspage a frame.
  if (impl_->zspages.keep_ahead(impl_->arena.ready_frames() + kBlockFrames)) changed = true;
  return changed;
}

bool Allocator::reserve_is_low() const noexcept {
  return impl_->arena.reserve_is_low();
}

uint64_t Allocator::reserve_misses() const noexcept {
  return impl_->arena.reserve_misses();
}

uint64_t Allocator::resident_bytes() const noexcept {
  return impl_->arena.populated_frames() * kFrameSize + impl_->arena.metadata_bytes() +
         impl_->zspages.resident_bytes();
}

std::span<const std::byte> Allocator::pool_range() const noexcept {
  return {base_, impl_->options.address_space_bytes};
}

}  // namespace tuck::allocator

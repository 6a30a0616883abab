// Façade of allocator/: a zsmalloc-style allocator for compressed objects. It knows bytes and
// owners, nothing of pages or codecs.
//
//   frame         4 KiB of the pool's address space; populated (resident) or not
//   size class    objects of one size, behind one lock
//   zspage        1 … 64 consecutive frames cut into objects of one class. Contiguous in virtual
//                 memory, so an object is always one linear range
//   group         (of fullness) the zspages of a class that are about equally full; allocation
//                 takes from the fullest
//   location      an object's place, in 8-byte steps from the pool's start
//   page map      for each frame: the zspage that it belongs to and its class
//
// Free space is tracked in descriptors (bitmaps), never inside free objects: their frames may be
// gone.
//
// Where to read on: size_class.h, zspage.h, frame_arena.h, then allocator.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "allocator/ledger.h"
#include "base/base.h"

namespace tuck::allocator {

inline constexpr uint32_t kFrameSize = 4096;
// The largest object, header included: 64 KiB and the codecs' worst-case growth.
inline constexpr uint32_t kObjectBytesMax = (64u << 10) + 1024;

// Whose object it is: the first slot of the unit's aligned range.
struct Owner {
  AreaId area{};
  SlotIndex slot{};

  friend bool operator==(const Owner&, const Owner&) = default;
};

// The 8 bytes before an object's payload, written when it is allocated.
//   slot 63…32, area 31…20, generation 19…0
class ObjectHeader {
 public:
  static constexpr uint32_t kGenerationBits = 20;
  static constexpr uint32_t kAreaBits = 12;

  constexpr ObjectHeader() = default;
  constexpr ObjectHeader(Owner owner, uint32_t generation) noexcept
      : word_((static_cast<uint64_t>(value(owner.slot)) << 32) |
              (static_cast<uint64_t>(value(owner.area)) << kGenerationBits) |
              (generation & ((1u << kGenerationBits) - 1))) {}

  constexpr Owner owner() const noexcept {
    return Owner{
        AreaId{static_cast<uint16_t>((word_ >> kGenerationBits) & ((1u << kAreaBits) - 1))},
        SlotIndex{static_cast<uint32_t>(word_ >> 32)}};
  }
  constexpr uint32_t generation() const noexcept {
    return static_cast<uint32_t>(word_) & ((1u << kGenerationBits) - 1);
  }

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(ObjectHeader) == 8);

// An object as its owner names it: payload_bytes is what it was allocated with.
struct Object {
  uint64_t location = 0;
  uint32_t payload_bytes = 0;
};

// What allocate() does that finds no ready frame.
enum class EmptyReserve : uint8_t {
  populate,  // brings frames itself, as many as pay at once
  // Says pending where maintain() could bring some. An engine's store is then pending where it has
  // a ticket, which is notified when the background has brought more.
  wait,
  // Fails with no_space at once, ticket or not, after it has looked for room in what is there. For
  // a server inside the machine that swaps onto it: there the background may get memory only when
  // stores have been answered.
  refuse,
};

struct AllocatorOptions {
  MemorySource* memory = nullptr;    // not owned; outlives the allocator
  uint64_t address_space_bytes = 0;  // reserved for the pool; at most 1 TiB
  uint64_t limit_bytes = 0;          // of populated frames; 0: none
  uint64_t reserve_bytes = 0;        // populated free frames to keep ready
  EmptyReserve empty_reserve = EmptyReserve::populate;
};

// Threads: every function from any thread at any time, unless it says otherwise.
class Allocator {
 public:
  static Result<std::unique_ptr<Allocator>, Error> create(const AllocatorOptions& options);
  // Objects that still live go with it.
  ~Allocator();

  // A place for payload_bytes (1 … kObjectBytesMax − 8) with the header written; the payload is the
  // caller's to write before it makes the location known. Errors: no_space (limit, or the system);
  // pending (under EmptyReserve::wait: the reserve is empty for now). Nothing has changed then.
  Result<uint64_t> allocate(uint32_t payload_bytes, Owner owner) noexcept;
  // Frees objects that nobody can reach any more. Each class lock is taken once, emptied zspages
  // are given up after it is dropped.
  void free(std::span<const Object> objects) noexcept;

  std::byte* payload(uint64_t location) const noexcept {
    return base_ + location * 8 + sizeof(ObjectHeader);
  }
  ObjectHeader header(uint64_t location) const noexcept {
    return *reinterpret_cast<const ObjectHeader*>(base_ + location * 8);
  }
  // What an object of that payload costs: its class, header included.
  uint32_t object_bytes(uint32_t payload_bytes) const noexcept;

  // Brings the reserve to its size: populates frames, or releases those that are too many.
  // Returns whether it changed anything. One caller at a time.
  bool maintain() noexcept;
  // Whether the reserve is so low that maintain() should run now.
  bool reserve_is_low() const noexcept;
  // How often allocate() found the reserve empty where the limit allowed more: memory pressure.
  uint64_t reserve_misses() const noexcept;

  Ledger ledger() const;
  uint64_t resident_bytes() const noexcept;                // pool frames and metadata
  std::span<const std::byte> pool_range() const noexcept;  // the reserved address range

  // Walks all classes, zspages, frames, and checks every equation between them; aborts on the first
  // that does not hold. Nothing else may run meanwhile.
  void verify() const;

 private:
  struct Impl;
  explicit Allocator(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
  std::byte* base_;  // of the pool
};

}  // namespace tuck::allocator

// The swap area of the VM front end: one engine area, addressed in pages and folios (as a memory
// manager does) or in bytes (as a block device does). The NBD server stands on it.
//
// Threads: every function may be called from any thread at any time; none takes a lock for longer
// than the publication of 16 entries. Nothing here allocates.
// Memory: data and out belong to the caller and are not touched after the call returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/engine.h"

namespace tuck::vm {

// How far a call in bytes got. bytes_done counts from the start of the range; what is behind it is
// unchanged (store) or not filled in (load). With Errc::pending the caller waits for the ticket and
// goes on from bytes_done.
struct [[nodiscard]] ByteResult {
  Errc code = Errc::ok;
  uint64_t bytes_done = 0;
};

enum class ExtentKind : uint8_t { hole, zero, data };

// hole: never stored, or freed; reads as zeroes. zero: stored zeroes. data: anything else.
struct ByteExtent {
  uint64_t bytes = 0;
  ExtentKind kind = ExtentKind::hole;
};

class SwapArea {
 public:
  // What trim(), write_zeroes() and status() look at in one call: a fraction of a millisecond, so
  // that a server can see to its other clients in between.
  static constexpr uint32_t kPagesACall = 8192;

  // engine and its area outlive this object. size_bytes may end inside a page; the area has
  // ceil(size_bytes / kPageSize) slots at least.
  SwapArea(engine::Engine& engine, AreaId area, uint64_t size_bytes) noexcept;

  uint64_t size_bytes() const noexcept { return size_bytes_; }
  AreaId area() const noexcept { return area_; }
  engine::Engine& engine() const noexcept { return engine_; }

  // --- Pages and folios ---------------------------------------------------------------------

  // Stores 2^order pages at slot (naturally aligned, the slots empty before) whole or not at all:
  // on an error what was published is freed again. Errors: no_space, pending, out_of_range,
  // invalid.
  Errc store_folio(SlotIndex slot, uint32_t order, const std::byte* data,
                   engine::Ticket* ticket = nullptr) noexcept;
  engine::RunResult load_run(SlotIndex slot, uint32_t pages, std::byte* out,
                             engine::Ticket* ticket = nullptr) noexcept;
  // One batched free through every layer. Never fails inside the area.
  engine::RunResult free_run(SlotIndex slot, uint32_t pages) noexcept;

  // --- Bytes: offset + length within size_bytes(), any alignment ---------------------------

  // Reads length bytes. Errors: pending, corrupt, out_of_range.
  ByteResult read(uint64_t offset, std::span<std::byte> out,
                  engine::Ticket* ticket = nullptr) noexcept;
  // Writes. Whole pages are stored as runs; the pages at the edges are loaded, merged and put back
  // with store_if, again if another writer came between. Atomic per page. Errors: no_space,
  // pending, out_of_range, corrupt (an edge page that does not decode).
  ByteResult write(uint64_t offset, std::span<const std::byte> data,
                   engine::Ticket* ticket = nullptr) noexcept;
  // Makes the range read as zeroes: whole pages are freed (or, with keep_allocated, stored as zero
  // pages, so that status() calls them zero rather than hole), the edges merged.
  // Works through at most kPagesACall pages a call: bytes_done says how far, with Errc::ok.
  ByteResult write_zeroes(uint64_t offset, uint64_t length, bool keep_allocated,
                          engine::Ticket* ticket = nullptr) noexcept;
  // Frees the whole pages of the range and leaves partial ones alone. bytes_done as above.
  ByteResult trim(uint64_t offset, uint64_t length) noexcept;
  // Fills extents (consecutive from offset; neighbours of one kind merged) and returns how many
  // were written: at least one for length > 0 and a non-empty span, fewer than would cover the
  // range if the span is full or very many pages were looked at.
  size_t status(uint64_t offset, uint64_t length, std::span<ByteExtent> extents) const noexcept;

 private:
  bool holds(uint64_t offset, uint64_t length) const noexcept;
  ByteResult merge_page(uint64_t offset, std::span<const std::byte> data,
                        engine::Ticket* ticket) noexcept;

  engine::Engine& engine_;
  const AreaId area_;
  const uint64_t size_bytes_;
};

}  // namespace tuck::vm

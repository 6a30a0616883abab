#include "frontends/vm/swap_area.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tuck::vm {
namespace {

using engine::Entry;
using engine::RunResult;
using engine::Ticket;

// For write_zeroes() with keep_allocated. Never written; not const, so that it costs no file space.
constexpr uint32_t kZeroPages = 16;
std::byte zero_pages[kZeroPages *
                     kPageSize];  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

SlotIndex slot_of(uint64_t offset) {
  return SlotIndex{static_cast<uint32_t>(offset / kPageSize)};
}

// The part of [offset, offset + length) that lies in the page of offset.
uint64_t bytes_in_page(uint64_t offset, uint64_t length) {
  return std::min(length, kPageSize - offset % kPageSize);
}

bool starts_whole_page(uint64_t offset, uint64_t length) {
  return offset % kPageSize == 0 && length >= kPageSize;
}

uint32_t whole_pages(uint64_t length, uint32_t most) {
  return static_cast<uint32_t>(std::min<uint64_t>(length / kPageSize, most));
}

ExtentKind kind_of(engine::SlotState state) {
  switch (state) {
    case engine::SlotState::empty:
      return ExtentKind::hole;
    case engine::SlotState::zero:
      return ExtentKind::zero;
    case engine::SlotState::same_filled:
    case engine::SlotState::stored:
      break;
  }
  return ExtentKind::data;
}

ByteResult in_bytes(RunResult result) {
  return {result.code, static_cast<uint64_t>(result.pages_done) * kPageSize};
}

}  // namespace

SwapArea::SwapArea(engine::Engine& engine, AreaId area, uint64_t size_bytes) noexcept
    : engine_(engine), area_(area), size_bytes_(size_bytes) {}

bool SwapArea::holds(uint64_t offset, uint64_t length) const noexcept {
  return offset <= size_bytes_ && length <= size_bytes_ - offset;
}

// --- Pages and folios ----------------------------------------------------------------------------

Errc SwapArea::store_folio(SlotIndex slot, uint32_t order, const std::byte* data,
                           Ticket* ticket) noexcept {
  if (order > kFolioOrderMax) return Errc::invalid;
  const uint32_t pages = 1u << order;
  if (value(slot) % pages != 0) return Errc::invalid;
  const RunResult stored = engine_.store(area_, slot, pages, data, ticket);
  if (stored.code != Errc::ok && stored.pages_done > 0) {
    const RunResult undone = engine_.free(area_, slot, stored.pages_done);
    TUCK_CHECK(undone.code == Errc::ok);
  }
  return stored.code;
}

RunResult SwapArea::load_run(SlotIndex slot, uint32_t pages, std::byte* out,
                             Ticket* ticket) noexcept {
  return engine_.load(area_, slot, pages, out, ticket);
}

RunResult SwapArea::free_run(SlotIndex slot, uint32_t pages) noexcept {
  return engine_.free(area_, slot, pages);
}

// --- Bytes ---------------------------------------------------------------------------------------

ByteResult SwapArea::read(uint64_t offset, std::span<std::byte> out, Ticket* ticket) noexcept {
  if (!holds(offset, out.size())) return {Errc::out_of_range, 0};
  uint64_t done = 0;
  while (done < out.size()) {
    const uint64_t at = offset + done;
    const uint64_t rest = out.size() - done;
    if (starts_whole_page(at, rest)) {
      const auto loaded = in_bytes(engine_.load(area_, slot_of(at), whole_pages(rest, kPagesACall),
                                                out.data() + done, ticket));
      done += loaded.bytes_done;
      if (loaded.code != Errc::ok) return {loaded.code, done};
      continue;
    }
    std::array<std::byte, kPageSize> page;
    const RunResult loaded = engine_.load(area_, slot_of(at), 1, page.data(), ticket);
    if (loaded.code != Errc::ok) return {loaded.code, done};
    const uint64_t bytes = bytes_in_page(at, rest);
    std::memcpy(out.data() + done, page.data() + at % kPageSize, bytes);
    done += bytes;
  }
  return {Errc::ok, done};
}

// Bytes of one page: what the page holds besides stays as it is, also when another writer is at it.
ByteResult SwapArea::merge_page(uint64_t offset, std::span<const std::byte> data,
                                Ticket* ticket) noexcept {
  std::array<std::byte, kPageSize> page;
  for (bool fetched_room = false;;) {
    RunResult stored;
    {
      const engine::Pin pin = engine_.pin();
      Entry seen;
      const RunResult loaded = engine_.load(pin, area_, slot_of(offset), 1, page.data(), &seen);
      if (loaded.code != Errc::ok) return {loaded.code, 0};
      std::memcpy(page.data() + offset % kPageSize, data.data(), data.size());
      stored = engine_.store_if(pin, area_, slot_of(offset), 1, page.data(), &seen, ticket);
    }
    // Another writer came between; it has made progress, so this loop ends.
    if (stored.code == Errc::changed) continue;
    if (stored.code == Errc::no_space && !fetched_room && engine_.fetch_room()) {
      fetched_room = true;
      continue;
    }
    return {stored.code, stored.code == Errc::ok ? data.size() : 0};
  }
}

ByteResult SwapArea::write(uint64_t offset, std::span<const std::byte> data,
                           Ticket* ticket) noexcept {
  if (!holds(offset, data.size())) return {Errc::out_of_range, 0};
  uint64_t done = 0;
  while (done < data.size()) {
    const uint64_t at = offset + done;
    const uint64_t rest = data.size() - done;
    const ByteResult written =
        starts_whole_page(at, rest)
            ? in_bytes(engine_.store(area_, slot_of(at), whole_pages(rest, kPagesACall),
                                     data.data() + done, ticket))
            : merge_page(at, data.subspan(done, bytes_in_page(at, rest)), ticket);
    done += written.bytes_done;
    if (written.code != Errc::ok) return {written.code, done};
  }
  return {Errc::ok, done};
}

ByteResult SwapArea::write_zeroes(uint64_t offset, uint64_t length, bool keep_allocated,
                                  Ticket* ticket) noexcept {
  if (!holds(offset, length)) return {Errc::out_of_range, 0};
  uint64_t done = 0;
  for (uint32_t pages_left = kPagesACall; done < length && pages_left > 0;) {
    const uint64_t at = offset + done;
    const uint64_t rest = length - done;
    ByteResult zeroed;
    if (!starts_whole_page(at, rest)) {
      const std::span<const std::byte> zeroes(zero_pages, bytes_in_page(at, rest));
      zeroed = merge_page(at, zeroes, ticket);
      --pages_left;
    } else {
      const uint32_t most = keep_allocated ? std::min(pages_left, kZeroPages) : pages_left;
      const uint32_t pages = whole_pages(rest, most);
      zeroed =
          in_bytes(keep_allocated ? engine_.store(area_, slot_of(at), pages, zero_pages, ticket)
                                  : engine_.free(area_, slot_of(at), pages));
      pages_left -= pages;
    }
    done += zeroed.bytes_done;
    if (zeroed.code != Errc::ok) return {zeroed.code, done};
  }
  return {Errc::ok, done};
}

ByteResult SwapArea::trim(uint64_t offset, uint64_t length) noexcept {
  if (!holds(offset, length)) return {Errc::out_of_range, 0};
  const uint64_t first = (offset + kPageSize - 1) / kPageSize * kPageSize;
  // The last page of an area that ends inside a page is whole for whoever trims up to the end.
  const uint64_t end = offset + length == size_bytes_
                           ? (size_bytes_ + kPageSize - 1) / kPageSize * kPageSize
                           : (offset + length) / kPageSize * kPageSize;
  if (first >= end) return {Errc::ok, length};
  const uint32_t pages = whole_pages(end - first, kPagesACall);
  const RunResult freed = engine_.free(area_, slot_of(first), pages);
  if (freed.code != Errc::ok) return {freed.code, 0};
  const uint64_t reached = first + static_cast<uint64_t>(pages) * kPageSize;
  return {Errc::ok, reached >= end ? length : reached - offset};
}

size_t SwapArea::status(uint64_t offset, uint64_t length,
                        std::span<ByteExtent> extents) const noexcept {
  if (length == 0 || extents.empty() || !holds(offset, length)) return 0;
  const uint64_t first_page = offset / kPageSize;
  const uint64_t end_page = (offset + length + kPageSize - 1) / kPageSize;
  const auto pages = static_cast<uint32_t>(std::min<uint64_t>(end_page - first_page, kPagesACall));
  const uint64_t end = std::min(offset + length, (first_page + pages) * kPageSize);

  std::array<engine::Extent, 256> found;
  uint32_t covered = 0;
  const size_t found_count =
      engine_.extents(area_, slot_of(offset), pages, std::span(found), &covered);
  size_t count = 0;
  uint64_t at = offset;
  uint64_t page_end = first_page * kPageSize;
  for (size_t i = 0; i < found_count; ++i) {
    page_end += static_cast<uint64_t>(found[i].pages) * kPageSize;
    const uint64_t until = std::min(page_end, end);
    const ExtentKind kind = kind_of(found[i].state);
    if (count > 0 && extents[count - 1].kind == kind) {
      extents[count - 1].bytes += until - at;
    } else {
      if (count == extents.size()) break;
      extents[count++] = ByteExtent{until - at, kind};
    }
    at = until;
  }
  return count;
}

}  // namespace tuck::vm

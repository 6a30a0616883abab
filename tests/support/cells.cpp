#include "tests/support/cells.h"

#include <algorithm>

#include "base/types.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

// Cells shorter than this show their value in one byte.
constexpr uint64_t kTagBytes = 3;
constexpr uint32_t kTags = 1u << (8 * kTagBytes);

std::byte as_byte(uint64_t value) {
  return static_cast<std::byte>(value & 0xff);
}

}  // namespace

Cells::Cells(uint32_t pages, uint64_t seed) {
  Random random(seed);
  for (uint32_t page = 0; page < pages; ++page) {
    const uint64_t start = uint64_t{page} * kPageSize;
    first_of_page_.push_back(static_cast<uint32_t>(begins_.size()));
    std::vector<uint64_t> borders = {0};
    for (uint64_t more = random.below(6); more > 0; --more) {
      // Close to the last one, close to the page's end, or anywhere.
      borders.push_back(random.one_in(3) ? std::min<uint64_t>(borders.back() + random.between(1, 9),
                                                              kPageSize - 1)
                        : random.one_in(4) ? kPageSize - random.between(1, 9)
                                           : random.below(kPageSize));
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    for (const uint64_t border : borders)
      begins_.push_back(start + border);
  }
  first_of_page_.push_back(static_cast<uint32_t>(begins_.size()));
  begins_.push_back(uint64_t{pages} * kPageSize);
}

uint32_t Cells::page_of(uint32_t cell) const {
  return static_cast<uint32_t>(begin(cell) / kPageSize);
}

std::byte Cells::byte_at(uint32_t cell, uint32_t value, uint64_t at) const {
  if (value == 0) return std::byte{0};
  if (bytes_in(cell) <= kTagBytes) return as_byte(value);
  if (at < kTagBytes) return as_byte(value >> (8 * at));
  // One byte repeated, a short pattern, or noise: some pages compress and some do not.
  switch (value % 4) {
    case 0:
      return as_byte(value * 37 + cell);
    case 1:
      return as_byte(value * 11 + at % 7);
    default:
      return as_byte(mix(value, at ^ uint64_t{cell} << 32));
  }
}

uint32_t Cells::fill(uint32_t cell, uint32_t version, std::byte* out) const {
  const uint32_t values = bytes_in(cell) <= kTagBytes ? 256 : kTags;
  const uint32_t value = version % (values - 1) + 1;
  for (uint64_t at = 0; at < bytes_in(cell); ++at)
    out[at] = byte_at(cell, value, at);
  return value;
}

std::optional<uint32_t> Cells::value_of(uint32_t cell, const std::byte* bytes) const {
  uint32_t value = 0;
  const uint64_t tag_bytes = bytes_in(cell) <= kTagBytes ? 1 : kTagBytes;
  for (uint64_t at = 0; at < tag_bytes; ++at)
    value |= static_cast<uint32_t>(bytes[at]) << (8 * at);
  for (uint64_t at = 0; at < bytes_in(cell); ++at) {
    if (bytes[at] != byte_at(cell, value, at)) return std::nullopt;
  }
  return value;
}

bool CellLog::add_read(uint32_t first, uint32_t last, std::span<const std::byte> bytes,
                       const Operation& times) {
  for (uint32_t cell = first; cell < last; ++cell) {
    const auto value =
        cells_.value_of(cell, bytes.data() + (cells_.begin(cell) - cells_.begin(first)));
    if (!value) {
      broken_ = "the bytes of cell " + std::to_string(cell) + " (" +
                std::to_string(cells_.begin(cell)) + " to " + std::to_string(cells_.end(cell)) +
                ") are of more than one write";
      return false;
    }
    Operation seen = times;
    seen.kind = Operation::Kind::see;
    seen.value = *value;
    add(cell, seen);
  }
  return true;
}

std::optional<std::string> find_impossible(const Cells& cells, std::span<const CellLog> logs) {
  for (const CellLog& log : logs) {
    if (!log.broken().empty()) return log.broken();
  }
  for (uint32_t cell = 0; cell < cells.count(); ++cell) {
    std::vector<Operation> all;
    for (const CellLog& log : logs)
      all.insert(all.end(), log.of(cell).begin(), log.of(cell).end());
    if (const auto impossible = find_impossible(std::move(all))) {
      return "cell " + std::to_string(cell) + ", bytes " + std::to_string(cells.begin(cell)) +
             " to " + std::to_string(cells.end(cell)) + ": " + *impossible;
    }
  }
  return std::nullopt;
}

}  // namespace tuck::test

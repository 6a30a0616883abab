// A disk cut into cells of odd sizes, so that callers who write different bytes of one page, whole
// pages, zeroes and holes can all be judged byte by byte: each cell is written whole or not at all,
// its bytes follow from a value, and the history of its values must be a possible one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/operation_history.h"

namespace tuck::test {

// Where the cells are and what is in them. A page's edge is always a cell's edge.
class Cells {
 public:
  // One to six cells a page; many are a few bytes long.
  Cells(uint32_t pages, uint64_t seed);

  uint32_t count() const { return static_cast<uint32_t>(begins_.size()) - 1; }
  uint32_t pages() const { return static_cast<uint32_t>(first_of_page_.size()) - 1; }
  uint64_t begin(uint32_t cell) const { return begins_[cell]; }
  uint64_t end(uint32_t cell) const { return begins_[cell + 1]; }
  // Cells [first_of_page(p), first_of_page(p + 1)) make up page p.
  uint32_t first_of_page(uint32_t page) const { return first_of_page_[page]; }
  uint32_t page_of(uint32_t cell) const;

  // The bytes of a cell for this version, and the value that they show: never 0, the same for every
  // 255th version in the smallest cells.
  uint32_t fill(uint32_t cell, uint32_t version, std::byte* out) const;
  // 0 for zeroes; nothing where the bytes are of no one version.
  std::optional<uint32_t> value_of(uint32_t cell, const std::byte* bytes) const;

 private:
  uint64_t bytes_in(uint32_t cell) const { return end(cell) - begin(cell); }
  std::byte byte_at(uint32_t cell, uint32_t value, uint64_t at) const;

  std::vector<uint64_t> begins_;  // and the end of the last
  std::vector<uint32_t> first_of_page_;
};

// What one caller did, cell by cell.
class CellLog {
 public:
  explicit CellLog(const Cells& cells) : cells_(cells), operations_(cells.count()) {}

  void add(uint32_t cell, const Operation& operation) { operations_[cell].push_back(operation); }
  const std::vector<Operation>& of(uint32_t cell) const { return operations_[cell]; }
  // What was read in [first, last): each cell as a sight with these times. False: the bytes of a
  // cell are of more than one write, which broken() says.
  bool add_read(uint32_t first, uint32_t last, std::span<const std::byte> bytes,
                const Operation& times);
  const std::string& broken() const { return broken_; }

 private:
  const Cells& cells_;
  std::vector<std::vector<Operation>> operations_;
  std::string broken_;
};

// The first cell whose history cannot have been, and why; or bytes that were read and are of no one
// write.
std::optional<std::string> find_impossible(const Cells& cells, std::span<const CellLog> logs);

}  // namespace tuck::test

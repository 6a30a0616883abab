// A disk as a test sees it, through the swap area or over NBD, and a part of it with an oracle for
// every byte.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontends/vm/vm.h"
#include "tests/nbd/clients.h"
#include "tests/support/seed.h"

namespace tuck::test {

// How a change went. no_space is the one error that memory may cause; lost: the connection is gone,
// and nobody says how far the change got.
struct Change {
  enum class End : uint8_t { done, no_space, lost, broken };
  End end = End::done;
  // How many bytes were changed; nothing: not told (NBD has no word for it).
  std::optional<uint64_t> bytes;
  std::string message;  // where it is broken
};

class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  virtual Change write(uint64_t offset, std::span<const std::byte> data) = 0;
  virtual Change zero(uint64_t offset, uint64_t bytes, bool keep_allocated) = 0;
  virtual Change trim(uint64_t offset, uint64_t bytes) = 0;
  // The message of what went wrong; empty: nothing did.
  virtual std::string read(uint64_t offset, std::span<std::byte> out) = 0;
  // The connection is gone. All calls fail from then on.
  virtual bool lost() const { return false; }
};

// Waits where the area says pending.
class AreaDisk final : public Disk {
 public:
  explicit AreaDisk(vm::SwapArea& area) : area_(area) {}
  Change write(uint64_t offset, std::span<const std::byte> data) override;
  Change zero(uint64_t offset, uint64_t bytes, bool keep_allocated) override;
  Change trim(uint64_t offset, uint64_t bytes) override;
  std::string read(uint64_t offset, std::span<std::byte> out) override;

 private:
  vm::SwapArea& area_;
};

// A client of its own.
class NbdDisk final : public Disk {
 public:
  // Connected, or a failure of the test.
  explicit NbdDisk(const std::string& uri);
  Change write(uint64_t offset, std::span<const std::byte> data) override;
  Change zero(uint64_t offset, uint64_t bytes, bool keep_allocated) override;
  Change trim(uint64_t offset, uint64_t bytes) override;
  std::string read(uint64_t offset, std::span<std::byte> out) override;

 private:
  Client client_;
};

// Ranges of bytes that one thread alone changes, and what is in them. They begin and end anywhere,
// so that other threads change the rest of the same pages.
class OwnedBytes {
 public:
  // Of the disk's bytes cut into pieces of this length: every count-th, from the index-th on.
  OwnedBytes(uint64_t disk_bytes, uint64_t piece_bytes, uint64_t index, uint64_t count);

  // One random call, checked. Returns what was wrong, or nothing; that the disk is lost is not
  // wrong.
  std::string step(Disk& disk, Random& random);
  // After the disk was lost, by way of another one: finds out how far the last change got.
  std::string settle_lost(Disk& disk);
  // Reads all, compares.
  std::string check(Disk& disk) const;
  // Writes other bytes everywhere; room(), which brings some, is called where there is none.
  template <class Room>
  std::string fill(Disk& disk, Random& random, Room room);

  uint64_t refused() const { return refused_; }

 private:
  struct Piece {
    uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  std::string change(Disk& disk, Piece& piece, uint64_t at, std::span<const std::byte> data,
                     const Change& how);
  std::string settle(Disk& disk, Piece& piece, uint64_t at, std::span<const std::byte> data);
  static std::string compare(uint64_t offset, std::span<const std::byte> found,
                             std::span<const std::byte> expected);

  // A change under way when the disk was lost.
  struct Lost {
    Piece* piece = nullptr;
    uint64_t at = 0;
    std::vector<std::byte> data;
  };

  std::vector<Piece> pieces_;
  Lost lost_;
  std::vector<std::byte> scratch_;
  uint64_t refused_ = 0;
};

// Bytes to write: compressible and not, pages of one word among them. No two calls in a row are
// likely to give the same.
std::span<const std::byte> some_bytes(Random& random, size_t bytes);

template <class Room>
std::string OwnedBytes::fill(Disk& disk, Random& random, Room room) {
  for (Piece& piece : pieces_) {
    const auto data = some_bytes(random, piece.bytes.size());
    for (;;) {
      const Change how = disk.write(piece.offset, data);
      if (auto wrong = change(disk, piece, 0, data, how); !wrong.empty()) return wrong;
      if (how.end == Change::End::done) break;
      if (!room()) return "no space, where there is some";
    }
  }
  return {};
}

}  // namespace tuck::test

// A file's bytes in memory, for reading.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/base.h"

namespace tuck::bench {

// Shared with the page cache: its pages count as the file's and not as the process's own. The bytes
// stay where they are when the object is moved. Any one thread may hold it, many may read.
class MappedFile {
 public:
  // Errors: the file cannot be read, or is empty.
  static Result<MappedFile, Error> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace tuck::bench

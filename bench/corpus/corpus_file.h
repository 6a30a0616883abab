// Reading and writing corpus files: raw pages, back to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/base.h"

namespace tuck::corpus {

// A corpus mapped for reading. The kernel reads pages in as they are touched, so whoever times
// work on them walks over them once before.
class PageFile {
 public:
  // Errors: not there or not readable, empty, not a whole number of pages.
  static Result<PageFile, Error> open(const std::string& path);
  PageFile(PageFile&& other) noexcept;
  PageFile& operator=(PageFile&& other) noexcept;
  ~PageFile();

  uint64_t pages() const noexcept { return bytes_.size() / kPageSize; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  // index < pages().
  std::span<const std::byte, kPageSize> page(uint64_t index) const noexcept {
    return bytes_.subspan(index * kPageSize).first<kPageSize>();
  }

 private:
  explicit PageFile(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// Writes a corpus beside its final name and moves it there at the end, so that a file of that name
// is always a whole corpus.
class PageFileWriter {
 public:
  // Errors: the place cannot be written to, or something that is no regular file has that name.
  static Result<PageFileWriter, Error> create(const std::string& path);
  PageFileWriter(PageFileWriter&& other) noexcept;
  PageFileWriter& operator=(PageFileWriter&&) = delete;
  // Removes what was written, unless finish() succeeded.
  ~PageFileWriter();

  // pages.size() is a multiple of the page size. After an error only destruction makes sense.
  Status append(std::span<const std::byte> pages);
  // Puts the file in place. Errors: as append(), and when there is no page in it.
  Status finish();
  uint64_t pages() const noexcept { return pages_; }

 private:
  PageFileWriter(std::string path, int fd);
  Status flush();

  std::string path_;
  std::string part_path_;
  int fd_ = -1;
  std::vector<std::byte> buffer_;
  uint64_t pages_ = 0;
};

}  // namespace tuck::corpus

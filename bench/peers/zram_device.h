// A zram device of our own: the kernel's compressed memory as a block device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "bench/frame/supervisor.h"

namespace tuck::bench {

// Removed when this goes, and when the bench is killed. Main thread only to create and to destroy;
// the rest from any thread, on bytes that no other thread is at.
//
// What write() and read() take has to be a whole number of pages, at a page's boundary in memory
// and on the device: they go past the page cache (O_DIRECT). All errors name the device and the
// system's reason.
class ZramDevice {
 public:
  // Of mm_stat, in bytes.
  struct Memory {
    uint64_t orig_data_size = 0;   // pages that hold something, uncompressed
    uint64_t compr_data_size = 0;  // the same, compressed; same-filled ones take none
    uint64_t mem_used_total = 0;   // what the compressed ones take with all that is around them
  };

  // bytes: of the disk, rounded up to whole pages. Errors: no zram in this kernel, no root, no such
  // algorithm.
  static Result<ZramDevice, Error> create(const std::string& algorithm, uint64_t bytes);
  ZramDevice(ZramDevice&& other) noexcept;
  ZramDevice& operator=(ZramDevice&&) = delete;
  ~ZramDevice();

  // "/dev/zram3"
  const std::string& path() const noexcept { return path_; }
  // One request a call. Returns when it is done.
  Status write(uint64_t offset, std::span<const std::byte> data) const;
  Status read(uint64_t offset, std::span<std::byte> data) const;
  Status discard(uint64_t offset, uint64_t bytes) const;
  // As an administrator would do it, by hand: the kernel never does.
  Status compact() const;
  Result<Memory, Error> memory() const;

 private:
  ZramDevice(Restored removed, int number);
  Status set_up(const std::string& algorithm, uint64_t bytes);
  // Of an attribute of the device.
  std::string attribute(const char* name) const;

  Restored removed_;  // goes after fd_ is closed: a device that is open cannot be removed
  int number_ = -1;
  std::string path_;
  int fd_ = -1;
};

// Of the text of mm_stat; nothing where that has not three numbers at least.
std::optional<ZramDevice::Memory> parse_mm_stat(const std::string& text);

}  // namespace tuck::bench

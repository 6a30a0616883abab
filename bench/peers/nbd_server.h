// A disk served over NBD by another program: tuck, or one of those that it is compared with.
#pragma once

#include <cstdint>
#include <string>

#include "bench/frame/process.h"
#include "bench/peers/scratch_folder.h"

namespace tuck::bench {

enum class NbdKind : uint8_t {
  tuck,                // `tuck serve`, all settings but the codec as they come
  nbdkit_memory,       // nbdkit's memory plugin as it comes: pages in plain memory
  nbdkit_memory_zstd,  // the same with allocator=zstd
  qemu_nbd,            // a raw file in a tmpfs
  null,                // reads zeroes, drops writes: what the transport alone takes
};

struct NbdDisk {
  NbdKind kind{};
  std::string codec;  // tuck only
  uint64_t bytes = 0;
};

// The codec that `tuck serve` takes when none is named, as tuck itself says.
Result<std::string, Error> default_codec(const ScratchFolder& folder);

// One server at a time in a folder. It ends when this does.
class NbdServer {
 public:
  // Returns when it takes connections. Errors: it is not installed, or does not start.
  static Result<NbdServer, Error> start(const NbdDisk& disk, const ScratchFolder& folder);
  NbdServer(NbdServer&&) noexcept = default;
  NbdServer& operator=(NbdServer&&) = delete;
  ~NbdServer();

  // What NBD clients connect to.
  std::string uri() const { return "nbd+unix:///?socket=" + socket_; }
  // Copies a file of the disk's size onto the disk; the seconds that this took.
  Result<double, Error> fill(const std::string& file);
  // What the disk holds in memory, beyond what the server held when it was empty.
  uint64_t memory_bytes() const;

 private:
  NbdServer(Child child, std::string socket, std::string file)
      : child_(std::move(child)), socket_(std::move(socket)), file_(std::move(file)) {}
  // Its process and its file.
  uint64_t held_bytes() const;
  Status wait_until_ready();
  Error early_end();

  Child child_;
  std::string socket_;
  std::string file_;  // that the disk is in; empty: none
  uint64_t empty_bytes_ = 0;
};

}  // namespace tuck::bench

#include "bench/peers/scratch_folder.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

namespace tuck::bench {

namespace {

constexpr const char* kMemoryFolder = "/dev/shm";

bool memory_has(uint64_t bytes) {
  struct statfs found {};
  return statfs(kMemoryFolder, &found) == 0 && found.f_type == TMPFS_MAGIC &&
         found.f_bavail * static_cast<uint64_t>(found.f_bsize) >= bytes;
}

// Known before the folder is made, so that whoever removes it knows it first; and nobody else's,
// since nobody can guess it.
std::string new_name(const std::string& parent) {
  std::random_device random;
  return fmt::format("{}/tuck-bench-{:08x}{:08x}", parent, random(), random());
}

}  // namespace

ScratchFolder::ScratchFolder(std::string path, bool in_memory)
    : path_(std::move(path)),
      in_memory_(in_memory),
      removed_({Undo::Kind::remove_tree, path_, ""}) {}

Result<ScratchFolder, Error> ScratchFolder::create(uint64_t bytes) {
  const bool in_memory = memory_has(bytes);
  std::error_code wrong;
  const std::string parent =
      in_memory ? kMemoryFolder : std::filesystem::temp_directory_path(wrong).string();
  if (wrong) return Error{Errc::invalid, "no folder for temporary files: " + wrong.message()};
  ScratchFolder folder(new_name(parent), in_memory);
  if (mkdir(folder.path_.c_str(), S_IRWXU) != 0) {
    return Error{Errc::invalid,
                 fmt::format("cannot make a folder in {}: {}", parent, std::strerror(errno))};
  }
  return folder;
}

}  // namespace tuck::bench

#include "bench/frame/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tuck::bench {

Result<MappedFile, Error> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error{Errc::invalid, "cannot open " + path};
  struct stat found {};
  void* memory = MAP_FAILED;
  if (fstat(fd, &found) == 0 && found.st_size > 0)
    memory = mmap(nullptr, static_cast<size_t>(found.st_size), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return Error{Errc::invalid, "nothing to read in " + path};
  return MappedFile({static_cast<const std::byte*>(memory), static_cast<size_t>(found.st_size)});
}

MappedFile::~MappedFile() {
  // munmap takes the address as the caller's to write to, which it never was.
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tuck::bench

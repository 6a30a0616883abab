#include "bench/corpus/corpus_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace tuck::corpus {

namespace {

// One system call a MiB: the file is written at the speed of the page cache.
constexpr size_t kBufferBytes = 1u << 20;

Error failed(const char* what, const std::string& path, int number) {
  return Error{number == ENOSPC ? Errc::no_space : Errc::invalid,
               fmt::format("cannot {} {}: {}", what, path, std::strerror(number))};
}

}  // namespace

Result<PageFile, Error> PageFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed("open", path, errno);
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    const int number = errno;
    close(fd);
    return failed("examine", path, number);
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size == 0 || size % kPageSize != 0) {
    close(fd);
    return Error{
        Errc::invalid,
        fmt::format("{} is not a corpus: it must be a file of one or more raw {}-byte pages", path,
                    kPageSize)};
  }
  void* mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int number = errno;
  close(fd);
  if (mapping == MAP_FAILED) return failed("map", path, number);
  return PageFile({static_cast<const std::byte*>(mapping), size});
}

PageFile::PageFile(PageFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

PageFile& PageFile::operator=(PageFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

PageFile::~PageFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<PageFileWriter, Error> PageFileWriter::create(const std::string& path) {
  struct stat status {};
  // The rename at the end would put a file in the place of a device or a link.
  if (lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return Error{Errc::invalid, fmt::format("{} exists and is not a regular file", path)};
  }
  const std::string part_path = path + ".part";
  const int fd =
      ::open(part_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return failed("write", part_path, errno);
  return PageFileWriter(path, fd);
}

PageFileWriter::PageFileWriter(std::string path, int fd)
    : path_(std::move(path)), part_path_(path_ + ".part"), fd_(fd) {
  buffer_.reserve(kBufferBytes);
}

PageFileWriter::PageFileWriter(PageFileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      part_path_(std::move(other.part_path_)),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      pages_(other.pages_) {}

PageFileWriter::~PageFileWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(part_path_.c_str());
}

Status PageFileWriter::append(std::span<const std::byte> pages) {
  TUCK_CHECK(pages.size() % kPageSize == 0);
  while (!pages.empty()) {
    const size_t step = std::min(pages.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), pages.begin(), pages.begin() + static_cast<ptrdiff_t>(step));
    pages_ += step / kPageSize;
    pages = pages.subspan(step);
    if (buffer_.size() == kBufferBytes) {
      if (Status status = flush()) return status;
    }
  }
  return {};
}

Status PageFileWriter::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", part_path_, errno);
    done += static_cast<size_t>(written);
  }
  buffer_.clear();
  return {};
}

Status PageFileWriter::finish() {
  if (Status status = flush()) return status;
  if (pages_ == 0) return Error{Errc::invalid, fmt::format("no page to write to {}", path_)};
  if (rename(part_path_.c_str(), path_.c_str()) != 0) return failed("write", path_, errno);
  close(std::exchange(fd_, -1));
  return {};
}

}  // namespace tuck::corpus

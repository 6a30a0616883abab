#include "bench/peers/zram_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

namespace tuck::bench {

namespace {

constexpr const char* kHotAdd = "/sys/class/zram-control/hot_add";
constexpr size_t kAddStackBytes = 256u << 10;  // for two system calls and a line of text

Error failed(const std::string& what, int why = errno) {
  return Error{Errc::invalid, fmt::format("{}: {}", what, std::strerror(why))};
}

Restored removal(int number) {
  return Restored({Undo::Kind::remove_zram, std::to_string(number), ""});
}

// Makes a device and returns its number, or -1 and errno. Reading the file is what makes it.
int hot_add() noexcept {
  const int fd = open(kHotAdd, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  char text[16] = {};
  const ssize_t got = read(fd, text, sizeof text - 1);
  const int why = errno;
  close(fd);
  errno = why;
  return got > 0 ? std::atoi(text) : -1;
}

struct Addition {
  int number = -1;
  int why = 0;  // errno where there is no number
  std::optional<Restored> removal;
};

// In a process of its own, but in our memory.
int add_and_tell(void* where) {
  Addition& added = *static_cast<Addition*>(where);
  setsid();
  added.number = hot_add();
  added.why = errno;
  if (added.number >= 0) added.removal.emplace(removal(added.number));
  return 0;
}

// A device's number is known only after it was made, so it cannot be registered before. The process
// that makes and registers it outlives a worker that is killed in between, is in no group with it,
// and holds the restorer's pipe open until it has ended, so that the restorer waits for it. A
// device is left behind only if that process itself is killed between its two calls to the kernel,
// some microseconds in which nothing else knows of it.
//
// It shares our memory while we wait: a copy, as fork() makes it, would have every page written
// next fault once, and what is measured next in this process would pay for that (measured: 6 us a
// store).
Addition add_device() {
  Addition added;
  std::vector<std::byte> stack(kAddStackBytes);
  const pid_t pid =
      clone(add_and_tell, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &added);
  if (pid < 0)
    added.why = errno;
  else
    waitpid(pid, nullptr, 0);
  return added;
}

Error cannot_add(int why) {
  if (why == ENOENT) return Error{Errc::invalid, "this kernel has no zram (try modprobe zram)"};
  if (why == EACCES || why == EPERM) return Error{Errc::invalid, "zram devices need root"};
  return failed("cannot add a zram device", why);
}

Status write_text(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int why = errno;
  if (fd >= 0) close(fd);
  if (written) return {};
  return failed(fmt::format("cannot write {} to {}", text, path), why);
}

// Of a call that moves so many bytes or fails.
Status moved(ssize_t did, size_t wanted, const char* what, const std::string& path) {
  if (did == static_cast<ssize_t>(wanted)) return {};
  return failed(fmt::format("cannot {} {}", what, path), did < 0 ? errno : EIO);
}

}  // namespace

ZramDevice::ZramDevice(Restored removed, int number)
    : removed_(std::move(removed)), number_(number), path_(fmt::format("/dev/zram{}", number)) {}

ZramDevice::ZramDevice(ZramDevice&& other) noexcept
    : removed_(std::move(other.removed_)),
      number_(other.number_),
      path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)) {}

ZramDevice::~ZramDevice() {
  if (fd_ >= 0) close(fd_);
}

Result<ZramDevice, Error> ZramDevice::create(const std::string& algorithm, uint64_t bytes) {
  Addition added = add_device();
  if (added.number < 0) return cannot_add(added.why);
  ZramDevice device(std::move(*added.removal), added.number);
  if (Status wrong = device.set_up(algorithm, bytes)) return std::move(*wrong);
  return device;
}

Status ZramDevice::set_up(const std::string& algorithm, uint64_t bytes) {
  if (Status wrong = write_text(attribute("comp_algorithm"), algorithm)) return wrong;
  if (Status wrong = write_text(attribute("disksize"), std::to_string(bytes))) return wrong;
  fd_ = open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  if (fd_ < 0) return failed("cannot open " + path_);
  return {};
}

std::string ZramDevice::attribute(const char* name) const {
  return fmt::format("/sys/block/zram{}/{}", number_, name);
}

Status ZramDevice::write(uint64_t offset, std::span<const std::byte> data) const {
  return moved(pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset)), data.size(),
               "write to", path_);
}

Status ZramDevice::read(uint64_t offset, std::span<std::byte> data) const {
  return moved(pread(fd_, data.data(), data.size(), static_cast<off_t>(offset)), data.size(),
               "read from", path_);
}

Status ZramDevice::discard(uint64_t offset, uint64_t bytes) const {
  uint64_t range[2] = {offset, bytes};
  if (ioctl(fd_, BLKDISCARD, range) != 0) return failed("cannot discard on " + path_);
  return {};
}

Status ZramDevice::compact() const {
  return write_text(attribute("compact"), "1");
}

Result<ZramDevice::Memory, Error> ZramDevice::memory() const {
  std::ifstream file(attribute("mm_stat"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto memory = parse_mm_stat(text);
  if (!memory) return Error{Errc::invalid, "cannot read " + attribute("mm_stat")};
  return *memory;
}

std::optional<ZramDevice::Memory> parse_mm_stat(const std::string& text) {
  std::istringstream numbers(text);
  ZramDevice::Memory memory;
  if (!(numbers >> memory.orig_data_size >> memory.compr_data_size >> memory.mem_used_total))
    return {};
  return memory;
}

}  // namespace tuck::bench

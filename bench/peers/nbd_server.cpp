#include "bench/peers/nbd_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/frame/stopwatch.h"

namespace tuck::bench {

namespace {

namespace fs = std::filesystem;

constexpr double kReadySeconds = 10;
constexpr double kFillSeconds = 600;
constexpr double kStatSeconds = 10;
constexpr auto kReadyPause = std::chrono::milliseconds(1);
constexpr uint64_t kStatBlock = 512;  // of st_blocks

std::vector<std::string> words_for(const NbdDisk& disk, const std::string& socket,
                                   const std::string& file) {
  const std::string bytes = std::to_string(disk.bytes);
  switch (disk.kind) {
    case NbdKind::tuck:
      return {own_program("tuck"), "serve",    "--unix",    socket, "--size",      bytes,
              "--codec",           disk.codec, "--control", "none", "--log-level", "error"};
    case NbdKind::nbdkit_memory:
      return {"nbdkit", "--foreground", "--unix", socket, "memory", bytes};
    case NbdKind::nbdkit_memory_zstd:
      return {"nbdkit", "--foreground", "--unix", socket, "memory", bytes, "allocator=zstd"};
    case NbdKind::qemu_nbd:
      // Several clients, as all others take; it ends with its first one otherwise.
      return {"qemu-nbd", "--persistent", "--shared=8", "--format=raw", "--socket", socket, file};
    case NbdKind::null:
      return {own_program("tuck-null-nbd"), socket, bytes};
  }
  return {};
}

Status make_disk_file(const std::string& path, uint64_t bytes) {
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const bool made = fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  const int why = errno;
  if (fd >= 0) close(fd);
  if (made) return {};
  return Error{Errc::no_space, fmt::format("cannot make {}: {}", path, std::strerror(why))};
}

bool accepts(const std::string& socket_path) {
  sockaddr_un address{};
  if (socket_path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return connected;
}

}  // namespace

NbdServer::~NbdServer() {
  child_.stop();
  std::error_code ignored;
  for (const std::string& path : {socket_, file_}) {
    if (!path.empty()) fs::remove(path, ignored);
  }
}

Result<NbdServer, Error> NbdServer::start(const NbdDisk& disk, const ScratchFolder& folder) {
  const std::string socket = folder.file("socket");
  std::string file;
  if (disk.kind == NbdKind::qemu_nbd) {
    if (!folder.in_memory())
      return Error{Errc::no_space, "/dev/shm is no tmpfs with room for the disk"};
    file = folder.file("disk");
    if (const Status wrong = make_disk_file(file, disk.bytes)) return *wrong;
  }
  const Command command{words_for(disk, socket, file), {}};
  auto child = Child::start(command, true);
  if (!child) return child.error();
  NbdServer server(std::move(*child), socket, file);
  if (const Status wrong = server.wait_until_ready()) return *wrong;
  server.empty_bytes_ = server.held_bytes();
  return server;
}

Status NbdServer::wait_until_ready() {
  const Stopwatch watch;
  while (!accepts(socket_)) {
    if (!child_.runs()) return early_end();
    if (watch.seconds() > kReadySeconds)
      return Error{Errc::invalid, fmt::format("took no connection in {} s", kReadySeconds)};
    std::this_thread::sleep_for(kReadyPause);
  }
  return {};
}

// With the first line of what it said.
Error NbdServer::early_end() {
  std::string said;
  if (!child_.read_line(said, 0)) said = child_.rest();
  return Error{Errc::invalid,
               fmt::format("ended at once: {}", said.empty() ? "without a word" : said)};
}

Result<double, Error> NbdServer::fill(const std::string& file) {
  const Stopwatch watch;
  // Where a server takes one connection only, nbdcopy uses one.
  const auto copied = run({{"nbdcopy", "--connections=4", file, uri()}, {}}, kFillSeconds);
  if (!copied) return copied.error();
  return watch.seconds();
}

uint64_t NbdServer::held_bytes() const {
  uint64_t bytes = anonymous_bytes(child_.pid());
  struct stat found {};
  if (!file_.empty() && stat(file_.c_str(), &found) == 0)
    bytes += static_cast<uint64_t>(found.st_blocks) * kStatBlock;
  return bytes;
}

uint64_t NbdServer::memory_bytes() const {
  const uint64_t held = held_bytes();
  return held > empty_bytes_ ? held - empty_bytes_ : 0;
}

Result<std::string, Error> default_codec(const ScratchFolder& folder) {
  const std::string control = folder.file("control");
  const std::string tuck = own_program("tuck");
  auto child = Child::start({{tuck, "serve", "--unix", folder.file("socket"), "--size", "64K",
                              "--control", control, "--log-level", "error"},
                             {}});
  if (!child) return child.error();
  for (const Stopwatch watch; !accepts(control) && watch.seconds() < kReadySeconds;)
    std::this_thread::sleep_for(kReadyPause);
  const auto stat = run({{tuck, "stat", "--json", "--control", control}, {}}, kStatSeconds);
  if (!stat) return stat.error();
  const auto json = nlohmann::json::parse(*stat, nullptr, false);
  const nlohmann::json::json_pointer codec("/exports/0/codec");
  if (json.is_discarded() || !json.contains(codec) || !json[codec].is_string())
    return Error{Errc::invalid, "tuck stat --json names no codec"};
  return json[codec].get<std::string>();
}

}  // namespace tuck::bench

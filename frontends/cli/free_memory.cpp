#include "frontends/cli/free_memory.h"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>

namespace tuck::cli {
namespace {

constexpr std::string_view kBlanks = " \t(),";

// The next word of a line, and the line without it.
std::string_view take_word(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

uint64_t number(std::string_view word) noexcept {
  uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

struct Zone {
  uint64_t free = 0, min = 0, managed = 0, kept = 0;

  // A zone that keeps more than it has is never used for anything else.
  uint64_t floor() const noexcept {
    return std::min(min - min / 8 + kept, std::max(managed, free));
  }
  void add_to(ZoneFigures& figures) const noexcept {
    figures.floors += floor();
    figures.most_room = std::max(figures.most_room, free - std::min(free, floor()));
  }
};

}  // namespace

// Of each zone, among other lines:
//   Node 0, zone    DMA32
//     pages free     772789
//           min      3918
//           managed  772915
//           protection: (0, 0, 9984, 9984, 9984)
// The last of the protections is towards allocations that can use any zone, like ours.
ZoneFigures parse_zoneinfo(std::string_view zoneinfo) noexcept {
  ZoneFigures figures;
  Zone zone;
  while (!zoneinfo.empty()) {
    std::string_view line = zoneinfo.substr(0, zoneinfo.find('\n'));
    zoneinfo.remove_prefix(std::min(line.size() + 1, zoneinfo.size()));
    const std::string_view key = take_word(line);
    if (key == "Node") {
      zone.add_to(figures);
      zone = Zone{};
    } else if (key == "pages" && take_word(line) == "free") {
      zone.free = number(take_word(line));
    } else if (key == "min") {
      zone.min = number(take_word(line));
    } else if (key == "managed") {
      zone.managed = number(take_word(line));
    } else if (key == "protection:") {
      for (std::string_view word = take_word(line); !word.empty(); word = take_word(line))
        zone.kept = number(word);
    }
  }
  zone.add_to(figures);
  return figures;
}

Result<FreeMemory, Error> FreeMemory::open(const char* zoneinfo) {
  constexpr size_t kFirstBytes = 64u << 10;
  FileDescriptor file(::open(zoneinfo, O_RDONLY | O_CLOEXEC));
  if (!file) return Error{Errc::invalid, std::string(zoneinfo) + ": " + std::strerror(errno)};
  FreeMemory memory(std::move(file), std::vector<char>(kFirstBytes));
  // Twice its size: its lines get longer with the numbers in them.
  while (memory.read().size() > memory.text_.size() / 2)
    memory.text_.resize(memory.text_.size() * 2);
  if (parse_zoneinfo(memory.read()).floors == 0) {
    return Error{Errc::invalid, std::string(zoneinfo) + " does not tell the zones' watermarks"};
  }
  return memory;
}

std::string_view FreeMemory::read() noexcept {
  size_t size = 0;
  while (size < text_.size()) {
    const ssize_t got =
        pread(zoneinfo_.get(), text_.data() + size, text_.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return {text_.data(), size};
}

bool FreeMemory::has(uint64_t bytes) noexcept {
  const uint64_t pages = bytes / kPageSize + (bytes % kPageSize != 0 ? 1 : 0);
  struct sysinfo info {};
  if (plenty_pages_ != UINT64_MAX && sysinfo(&info) == 0 &&
      uint64_t{info.freeram} * info.mem_unit / kPageSize >= plenty_pages_ + pages) {
    return true;
  }
  constexpr std::chrono::milliseconds kPause{1};
  const Clock::time_point now = Clock::now();
  if (now < refused_until_) return false;
  const ZoneFigures figures = parse_zoneinfo(read());
  // The marks can be changed at any time.
  plenty_pages_ = 2 * figures.floors;
  if (figures.most_room >= pages) return true;
  refused_until_ = now + kPause;
  return false;
}

}  // namespace tuck::cli

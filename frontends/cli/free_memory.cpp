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

// How many of the system's pages the kernel has free; nothing where it does not say.
std::optional<uint64_t> free_pages(uint64_t page_bytes) noexcept {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return std::nullopt;
  return uint64_t{info.freeram} * info.mem_unit / page_bytes;
}

uint64_t system_page_bytes() noexcept {
  return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

struct Zone {
  std::optional<uint64_t> free, min, managed, kept;

  // One of which a part is missing (the file was longer than the buffer) is no zone.
  bool is_whole() const noexcept { return free && min && managed && kept; }
  // A zone that keeps more than it has is never used for anything else.
  uint64_t floor() const noexcept {
    return std::min(*min - *min / 8 + *kept, std::max(*managed, *free));
  }
  void add_to(std::optional<ZoneFigures>& sum) const noexcept {
    if (!is_whole()) return;
    ZoneFigures figures = sum.value_or(ZoneFigures{});
    figures.floors += floor();
    figures.most_room = std::max(figures.most_room, *free - std::min(*free, floor()));
    if (floor() < *managed) figures.largest_eighth = std::max(figures.largest_eighth, *min / 8);
    sum = figures;
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
std::optional<ZoneFigures> parse_zoneinfo(std::string_view zoneinfo) noexcept {
  std::optional<ZoneFigures> figures;
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
  std::string_view text = memory.read();
  while (text.size() > memory.text_.size() / 4) {
    memory.text_.resize(memory.text_.size() * 2);
    text = memory.read();
  }
  if (!memory.look()) {
    return Error{Errc::invalid, std::string(zoneinfo) + " does not tell the zones' watermarks"};
  }
  return memory;
}

// The beginning of the file, whole but where the buffer is too small; empty: it cannot be read.
std::string_view FreeMemory::read() noexcept {
  size_t size = 0;
  while (size < text_.size()) {
    const ssize_t got =
        pread(zoneinfo_.get(), text_.data() + size, text_.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  return {text_.data(), size};
}

// Whether figures_ are of now.
bool FreeMemory::look() noexcept {
  const auto figures = parse_zoneinfo(read());
  if (!figures) return false;
  figures_ = *figures;
  looked_ = Clock::now();
  return true;
}

uint64_t FreeMemory::largest_eighth_bytes() const noexcept {
  return figures_.largest_eighth * system_page_bytes();
}

bool FreeMemory::has(uint64_t bytes) noexcept {
  const uint64_t page = system_page_bytes();
  const uint64_t pages = bytes / page + (bytes % page != 0 ? 1 : 0);
  const Clock::time_point now = Clock::now();
  if (now < refused_until_) return false;
  if (now < looked_ + kPlentyHolds) {
    const auto free = free_pages(page);
    if (free && *free >= 2 * figures_.floors + pages) return true;
  }
  if (look() && figures_.most_room >= pages) return true;
  refused_until_ = now + kPause;
  return false;
}

}  // namespace tuck::cli

#include "bench/peers/zram_swap.h"

#include <fmt/format.h>
#include <sys/swap.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tuck::bench {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPageCluster = "/proc/sys/vm/page-cluster";
constexpr const char* kFolioFolder = "/sys/kernel/mm/transparent_hugepage";
constexpr int kHighestPriority = 32767;  // the kernel's own limit
constexpr double kMkswapSeconds = 30;
constexpr double kAnswerSeconds = 300;  // only a hang takes that long
// Swapped folios need whole, aligned runs of slots; with as much room again there always are some.
constexpr uint64_t kRoom = 2;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Status write_setting(const std::string& path, const std::string& value) {
  std::ofstream file(path);
  file << value << std::flush;
  if (file) return {};
  return Error{Errc::invalid,
               fmt::format("cannot write {} to {}: {}", value, path, std::strerror(errno))};
}

Restored setting(const std::string& path, const std::string& value) {
  return Restored({Undo::Kind::write_file, path, value});
}

}  // namespace

Result<SwappingOn, Error> SwappingOn::begin(const std::string& device) {
  std::string pages_at_once = text_of(kPageCluster);
  pages_at_once.resize(std::min(pages_at_once.find('\n'), pages_at_once.size()));
  SwappingOn on(setting(kPageCluster, pages_at_once), Restored({Undo::Kind::swap_off, device, ""}));
  if (Status wrong = write_setting(kPageCluster, "0")) return std::move(*wrong);
  const int flags = SWAP_FLAG_PREFER | priority_above(text_of("/proc/swaps"));
  if (swapon(device.c_str(), flags) != 0) {
    return Error{Errc::invalid, fmt::format("cannot swap to {}: {}", device, std::strerror(errno))};
  }
  return on;
}

Result<ZramSwap, Error> ZramSwap::create(const std::string& algorithm, uint64_t bytes) {
  auto device = ZramDevice::create(algorithm, bytes * kRoom);
  if (!device) return device.error();
  const auto made = run({{"mkswap", device->path()}, {}}, kMkswapSeconds);
  if (!made) return made.error();
  return ZramSwap(std::move(*device));
}

Result<FolioSize, Error> FolioSize::set(unsigned kib) {
  FolioSize size;
  if (kib == 4) return size;
  const std::string wanted = fmt::format("hugepages-{}kB", kib);
  if (!fs::exists(fmt::format("{}/{}/enabled", kFolioFolder, wanted)))
    return Error{Errc::invalid, fmt::format("this kernel makes no folios of {} KiB", kib)};
  for (const auto& folder : fs::directory_iterator(kFolioFolder)) {
    const std::string path = folder.path() / "enabled";
    const auto before = chosen(text_of(path));
    const std::string value = folder.path().filename() == wanted ? "madvise" : "never";
    if (!folder.is_directory() || !before || *before == value) continue;
    size.before_.push_back(setting(path, *before));
    if (Status wrong = write_setting(path, value)) return std::move(*wrong);
  }
  return size;
}

Result<SwapSubject, Error> SwapSubject::start(unsigned folio_kib) {
  auto child =
      Child::start({{own_program("tuck-swap-subject"), std::to_string(folio_kib)}, {}}, true);
  if (!child) return child.error();
  return SwapSubject(std::move(*child));
}

Result<SwapAnswer, Error> SwapSubject::fill(std::span<const std::byte> pages) {
  const std::string line = fmt::format("fill {}\n", pages.size());
  // Where the subject refuses the pages, it says why.
  if (child_.write(line.data(), line.size())) child_.write(pages.data(), pages.size());
  return answer();
}

Result<SwapAnswer, Error> SwapSubject::command(const std::string& line) {
  child_.write(line.data(), line.size());
  return answer();
}

Result<SwapAnswer, Error> SwapSubject::answer() {
  std::string line;
  if (!child_.read_line(line, kAnswerSeconds)) {
    return Error{Errc::invalid, child_.runs() ? "the swap subject does not answer"
                                              : "the swap subject is gone " + child_.rest()};
  }
  return parse_swap_answer(line);
}

std::optional<std::string> chosen(const std::string& text) {
  const size_t begin = text.find('[');
  const size_t end = text.find(']', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return text.substr(begin + 1, end - begin - 1);
}

int priority_above(const std::string& proc_swaps) {
  std::istringstream lines(proc_swaps);
  std::string line;
  std::getline(lines, line);  // names of the columns
  int highest = -1;
  while (std::getline(lines, line)) {
    // The last column; the first one may have blanks in it.
    const size_t column = line.find_last_of(" \t");
    if (column != std::string::npos) highest = std::max(highest, std::atoi(&line[column + 1]));
  }
  return std::min(highest + 1, kHighestPriority);
}

}  // namespace tuck::bench

// tuck-swap-subject FOLIO_KIB: maps memory, has the kernel swap it, and says what that took.
// Commands and answers: swap_subject.h. It ends with its standard input.
//
// It asks for folios of this size and gets them only where the kernel's settings have them; what it
// really got is in the answers.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "bench/frame/stopwatch.h"
#include "bench/peers/swap_subject.h"

namespace tuck::bench {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kFolioKibMost = 2048;
// Pages that something else holds for a moment are left in memory by one call.
constexpr int kPageoutTries = 20;
// What may stay in memory in the end, as a share: pages that were never swapped are in no figure.
constexpr double kMayStay = 0.01;
constexpr uint32_t kOrderSeed = 1;

Error failed(const char* what) {
  return Error{Errc::invalid, fmt::format("{}: {}", what, std::strerror(errno))};
}

// Of this process, by the name that smaps_rollup has for it.
uint64_t own_bytes(std::string_view name) {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string line;
  while (std::getline(rollup, line)) {
    if (line.starts_with(name) && line[name.size()] == ':')
      return std::stoull(line.substr(name.size() + 1)) * kKiB;
  }
  return 0;
}

uint64_t folio_counter(uint64_t folio_kib, const char* name) {
  std::ifstream file(
      fmt::format("/sys/kernel/mm/transparent_hugepage/hugepages-{}kB/stats/{}", folio_kib, name));
  uint64_t value = 0;
  file >> value;
  return value;
}

// What the kernel counts from here on, until it is put into an answer.
class FolioCount {
 public:
  // Names of the kernel's counters.
  FolioCount(uint64_t folio_kib, const char* whole, const char* fallback)
      : folio_kib_(folio_kib), whole_(whole), fallback_(fallback) {
    before_ = now();
  }
  void add_to(SwapAnswer& answer) const {
    const Counts counts = now();
    answer.folios = counts.whole - before_.whole;
    answer.fallbacks = counts.fallback - before_.fallback;
  }

 private:
  struct Counts {
    uint64_t whole = 0;
    uint64_t fallback = 0;
  };
  Counts now() const {
    return {folio_counter(folio_kib_, whole_), folio_counter(folio_kib_, fallback_)};
  }

  uint64_t folio_kib_;
  const char* whole_;
  const char* fallback_;
  Counts before_;
};

constexpr std::string_view kFill = "fill ";
bool is_fill(std::string_view command) {
  return command.starts_with(kFill);
}

class Subject {
 public:
  explicit Subject(uint64_t folio_kib) : folio_kib_(folio_kib) {}

  Result<SwapAnswer, Error> perform(std::string_view command);

 private:
  Result<SwapAnswer, Error> fill(uint64_t bytes);
  Result<SwapAnswer, Error> pageout();
  Result<SwapAnswer, Error> fault(bool in_random_order);
  Result<SwapAnswer, Error> unmap();

  Status map(uint64_t bytes);
  uint64_t swapped() const {
    const uint64_t now = own_bytes("Swap");
    return now > swap_before_ ? now - swap_before_ : 0;
  }
  SwapAnswer answer(uint64_t ns, uint64_t bytes) const {
    return {ns, bytes, swapped(), own_bytes("AnonHugePages"), 0, 0};
  }

  uint64_t folio_kib_;
  std::byte* memory_ = nullptr;
  uint64_t bytes_ = 0;        // whole folios
  uint64_t swap_before_ = 0;  // of the rest of this process
};

// Begins at a folio's boundary, or the kernel could not make the first ones whole.
Status Subject::map(uint64_t bytes) {
  const uint64_t folio = folio_kib_ * kKiB;
  const uint64_t wanted = (bytes + folio - 1) / folio * folio;
  void* const mapped = mmap(nullptr, wanted + folio, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return failed("cannot map memory");
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  const uint64_t before = (folio - address % folio) % folio;
  memory_ = static_cast<std::byte*>(mapped) + before;
  bytes_ = wanted;
  if (before > 0) munmap(mapped, before);
  munmap(memory_ + bytes_, folio - before);
  if (folio_kib_ == 4) {
    // A kernel that makes no large folios does not know the advice, and does not need it.
    madvise(memory_, bytes_, MADV_NOHUGEPAGE);
    return {};
  }
  if (madvise(memory_, bytes_, MADV_HUGEPAGE) != 0) return failed("no large folios");
  return {};
}

Result<SwapAnswer, Error> Subject::fill(uint64_t bytes) {
  if (memory_ != nullptr) return Error{Errc::invalid, "it is filled already"};
  if (bytes == 0 || bytes % kPageSize != 0) return Error{Errc::invalid, "no whole pages"};
  swap_before_ = own_bytes("Swap");
  if (Status wrong = map(bytes)) return std::move(*wrong);
  const FolioCount count(folio_kib_, "anon_fault_alloc", "anon_fault_fallback");
  const Stopwatch watch;
  for (uint64_t at = 0; at < bytes;) {
    const ssize_t got = read(STDIN_FILENO, memory_ + at, bytes - at);
    if (got <= 0) return Error{Errc::invalid, "the pages ended early"};
    at += static_cast<uint64_t>(got);
  }
  SwapAnswer filled = answer(watch.ns(), bytes_);
  count.add_to(filled);
  return filled;
}

Result<SwapAnswer, Error> Subject::pageout() {
  const uint64_t before = swapped();
  const auto enough = static_cast<uint64_t>(static_cast<double>(bytes_) * (1 - kMayStay));
  const FolioCount count(folio_kib_, "swpout", "swpout_fallback");
  uint64_t ns = 0;
  for (int i = 0; i < kPageoutTries && swapped() < bytes_; ++i) {
    const Stopwatch watch;
    if (madvise(memory_, bytes_, MADV_PAGEOUT) != 0) return failed("cannot page out");
    ns += watch.ns();
  }
  SwapAnswer out = answer(ns, 0);
  if (out.swap_bytes < enough) {
    return Error{Errc::no_space,
                 fmt::format("the kernel swapped only {} of {} bytes out", out.swap_bytes, bytes_)};
  }
  out.bytes = out.swap_bytes - std::min(before, out.swap_bytes);
  count.add_to(out);
  return out;
}

Result<SwapAnswer, Error> Subject::fault(bool in_random_order) {
  std::vector<uint32_t> order(bytes_ / kPageSize);
  std::iota(order.begin(), order.end(), 0u);
  if (in_random_order) std::shuffle(order.begin(), order.end(), std::mt19937(kOrderSeed));
  const uint64_t before = swapped();
  const FolioCount count(folio_kib_, "swpin", "swpin_fallback");
  const Stopwatch watch;
  for (const uint64_t page : order)
    keep(*static_cast<const volatile std::byte*>(memory_ + page * kPageSize));
  SwapAnswer in = answer(watch.ns(), 0);
  in.bytes = before - std::min(before, in.swap_bytes);
  count.add_to(in);
  return in;
}

Result<SwapAnswer, Error> Subject::unmap() {
  const uint64_t before = swapped();
  const Stopwatch watch;
  if (munmap(memory_, bytes_) != 0) return failed("cannot unmap");
  const uint64_t ns = watch.ns();
  memory_ = nullptr;
  bytes_ = 0;
  SwapAnswer freed = answer(ns, 0);
  freed.bytes = before - std::min(before, freed.swap_bytes);
  return freed;
}

Result<SwapAnswer, Error> Subject::perform(std::string_view command) {
  if (is_fill(command)) {
    uint64_t bytes = 0;
    std::from_chars(command.data() + kFill.size(), command.data() + command.size(), bytes);
    return fill(bytes);
  }
  if (memory_ == nullptr) return Error{Errc::invalid, "it has to be filled first"};
  if (command == "pageout") return pageout();
  if (command == "fault order") return fault(false);
  if (command == "fault random") return fault(true);
  if (command == "unmap") return unmap();
  return Error{Errc::invalid, fmt::format("there is no command {}", command)};
}

// Byte by byte: what comes behind a line's end are pages, which are read elsewhere.
bool read_command(std::string& command) {
  command.clear();
  char next = 0;
  while (read(STDIN_FILENO, &next, 1) == 1) {
    if (next == '\n') return true;
    command += next;
  }
  return false;
}

int subject_main(int argc, char** argv) {
  uint64_t folio_kib = 0;
  if (argc == 2) std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), folio_kib);
  if (folio_kib < 4 || folio_kib > kFolioKibMost || (folio_kib & (folio_kib - 1)) != 0) {
    fmt::print(stderr, "usage: tuck-swap-subject FOLIO_KIB (4, 8, 16 ... {})\n", kFolioKibMost);
    return 2;
  }
  Subject subject(folio_kib);
  std::string command;
  while (read_command(command)) {
    const auto done = subject.perform(command);
    fmt::print("{}\n", done ? to_line(*done) : to_line(done.error()));
    if (std::fflush(stdout) != 0) return 1;
    // What follows may be pages, which are no commands.
    if (!done && is_fill(command)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tuck::bench

int main(int argc, char** argv) {
  try {
    return tuck::bench::subject_main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tuck-swap-subject: {}\n", error.what());
    return 1;
  }
}

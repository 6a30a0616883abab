#include "frontends/cli/swap_protection.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "frontends/cli/process_figures.h"

// Linux 5.6 and 5.14; the constants are newer than some systems' headers.
#if !defined(PR_SET_IO_FLUSHER)
#define PR_SET_IO_FLUSHER 57
#endif
#if !defined(MADV_POPULATE_READ)
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace tuck::cli {
namespace {

// What PR_SET_IO_FLUSHER sets in a task's flags (include/linux/sched.h, as /proc shows them):
// memory is allocated without waiting for I/O, and the task's own writes are throttled by
// themselves.
constexpr uint64_t kMemallocNoio = 0x80000;
constexpr uint64_t kLocalThrottle = 0x100000;

// A thread's stack is made resident in full. The deepest path (a store that compresses with zstd)
// takes some tens of KiB; sanitizers make it a few times that.
constexpr size_t kStackBytes = 256u << 10;
// Heap that is kept resident for what the main thread puts together for `tuck stat`.
constexpr size_t kHeapRoomBytes = 1u << 20;

constexpr int kOomProtected = -1000;
// What the names of the threads that answer requests begin with (frontends/nbd/server.cpp), and the
// name of the one that brings memory (engine/engine.cpp).
constexpr std::string_view kServingThreads = "tuck-nbd-";
constexpr std::string_view kRefillingThread = "tuck-background";
// The lowest real-time priorities.
constexpr int kServingPriority = 2;
constexpr int kRefillingPriority = 1;
constexpr unsigned kCapIpcLock = 14;

std::string error_text() {
  return std::strerror(errno);
}

bool may_lock_any_amount() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) return true;
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "CapEff:") continue;
    uint64_t capabilities = 0;
    status >> std::hex >> capabilities;
    return (capabilities >> kCapIpcLock & 1) != 0;
  }
  return false;
}

std::string protect_from_oom() {
  std::ofstream file("/proc/self/oom_score_adj");
  file << kOomProtected << std::flush;
  if (file) return "";
  return "writing oom_score_adj: " + error_text();
}

// Threads get stacks of a size that can be made resident; the heap is one, keeps what it has, and
// takes nothing from the system behind our back.
void tame_libc() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, kHeapRoomBytes);
  std::free(std::malloc(kHeapRoomBytes));
}

// The kernel's own: vdso, io_uring's rings. They are pinned and cannot be locked.
bool is_the_kernels(const Mapping& mapping) {
  return mapping.name.starts_with("[v") || mapping.name.starts_with("anon_inode:") ||
         mapping.has_flag("io") || mapping.has_flag("pf");
}

bool overlaps_any(const Mapping& mapping, const std::vector<AddressRange>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&mapping](const AddressRange& range) {
    return range.overlaps(mapping.range);
  });
}

// Memory that has to be there. Not: what is only reserved (MAP_NORESERVE), which its owner fills as
// it goes; nobody could populate that.
bool has_to_be_resident(const Mapping& mapping, const std::vector<AddressRange>& filled_later) {
  return mapping.may_be_touched() && !is_the_kernels(mapping) && !mapping.has_flag("nr") &&
         !overlaps_any(mapping, filled_later);
}

void* address_of(const Mapping& mapping) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): from a text of the kernel's.
  return reinterpret_cast<void*>(mapping.range.begin);
}

// The main thread's stack grows as it is used: by as much as other threads have.
[[gnu::noinline]] void use_stack() {
  std::array<char, kStackBytes> deep;
  volatile char* const bytes = deep.data();
  for (size_t at = 0; at < kStackBytes; at += 4096)
    bytes[at] = 0;
}

// Makes a mapping resident. Private writable memory is written to, so that no copy is made later.
// The text says what was refused.
std::string populate(const Mapping& mapping) {
  const int advice = mapping.writable() ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  while (madvise(address_of(mapping), mapping.bytes(), advice) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    return "making " + (mapping.name.empty() ? "memory" : mapping.name) +
           " resident: " + error_text();
  }
  return "";
}

std::string populate_all(const std::vector<AddressRange>& filled_later) {
  use_stack();
  std::string refused;
  for (const Mapping& mapping : own_mappings()) {
    if (!has_to_be_resident(mapping, filled_later)) continue;
    if (std::string one = populate(mapping); !one.empty()) refused = std::move(one);
  }
  return refused;
}

Protection check_residence(const std::string& refused,
                           const std::vector<AddressRange>& filled_later) {
  Protection result{"resident", false, refused};
  uint64_t missing = 0;
  for (const Mapping& mapping : own_mappings()) {
    if (has_to_be_resident(mapping, filled_later)) {
      missing += mapping.bytes() - std::min(mapping.bytes(), mapping.resident_bytes);
    }
  }
  const uint64_t swapped = read_process_figures().swapped_bytes;
  result.holds = refused.empty() && missing == 0 && swapped == 0;
  if (!refused.empty()) return result;
  result.detail = result.holds ? "all code, stacks, heap and buffers are in memory"
                               : format_size_rounded(missing) + " not in memory, " +
                                     format_size_rounded(swapped) + " swapped out";
  return result;
}

// visit(id, text of its stat file) for each task of this process.
template <class Visit>
void for_each_task(const Visit& visit) {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream file(std::string("/proc/self/task/") + entry->d_name + "/stat");
    std::string text;
    // One that has ended meanwhile needs nothing any more.
    if (std::getline(file, text)) visit(static_cast<pid_t>(std::atoi(entry->d_name)), text);
  }
  closedir(tasks);
}

Protection check_flusher(const std::string& refused) {
  const ThreadFlags flags = read_thread_flags();
  Protection result;
  result.name = "io_flusher";
  result.holds = refused.empty() && flags.threads != 0 && flags.unprotected == 0;
  if (!refused.empty()) {
    result.detail = refused + "; needs Linux 5.6 and CAP_SYS_RESOURCE";
  } else if (result.holds) {
    result.detail = "all " + std::to_string(flags.threads) + " threads have it";
  } else {
    result.detail = std::to_string(flags.unprotected) + " of " + std::to_string(flags.threads) +
                    " threads do not have it, " + flags.first_unprotected + " among them";
  }
  return result;
}

Protection check_oom(const std::string& refused) {
  const int64_t score = read_process_figures().oom_score_adj;
  Protection result{"oom_score_adj", score == kOomProtected, std::to_string(score)};
  if (!result.holds) result.detail += "; " + refused + "; needs CAP_SYS_RESOURCE";
  return result;
}

// A reply is copied into memory of the kernel's. When free memory is down to the mark at which
// everybody waits for pages to be written out, the replies that would let it rise wait as well.
// Linux lets real-time tasks go below that mark, by a quarter of it (a half since Linux 6.4). So it
// is with the frames for the pages that are written out: whoever writes them takes all that becomes
// free above the mark, and without a share below it the background would get none, and no more
// pages could be taken in. It takes the upper half of that quarter only (free_memory.h), the
// replies need the rest.
Protection put_serving_threads_first() {
  Protection result;
  result.name = "priority";
  unsigned serving = 0;
  unsigned refilling = 0;
  for_each_task([&](pid_t id, const std::string& text) {
    std::string name;
    uint64_t flags = 0;
    if (!parse_task_stat(text, name, flags)) return;
    sched_param wanted{};
    if (name.starts_with(kServingThreads)) {
      wanted.sched_priority = kServingPriority;
      ++serving;
    } else if (name == kRefillingThread) {
      wanted.sched_priority = kRefillingPriority;
      ++refilling;
    } else {
      return;
    }
    if (sched_setscheduler(id, SCHED_RR, &wanted) != 0) {
      result.detail = "SCHED_RR for " + name + ": " + error_text() + "; needs CAP_SYS_NICE";
    } else if (sched_getscheduler(id) != SCHED_RR) {
      result.detail = name + " is not a real-time task";
    }
  });
  result.holds = serving != 0 && refilling == 1 && result.detail.empty();
  if (result.detail.empty()) {
    result.detail = std::to_string(serving) + " threads that serve and " +
                    std::to_string(refilling) + " that brings memory are real-time tasks";
  }
  return result;
}

// Of what the kernel keeps free for those who free memory, the serving threads have a quarter. Half
// of that is for replies, and has to hold a socket's buffer for each connection
// (net.core.wmem_default, 208 KiB). The reserve is refilled from the other half, some blocks of 64
// frames at once, of one zone.
Protection check_min_free(const SwapProtection::Expected& expected, bool refilled_from_it) {
  constexpr uint64_t kKibAConnection = 2048;  // an eighth of it: 256 KiB
  constexpr uint64_t kRefillBytes = 3ull * 64 * kPageSize;
  const uint64_t share = expected.refill_share_bytes;
  uint64_t kib = 0;
  std::ifstream("/proc/sys/vm/min_free_kbytes") >> kib;
  uint64_t wanted = kKibAConnection * expected.connections;
  if (refilled_from_it && share < kRefillBytes) {
    wanted = std::max(wanted, share == 0 ? 2 * kib : kib * kRefillBytes / share + 1);
  }
  Protection result{"min_free", kib >= wanted, "vm.min_free_kbytes is " + std::to_string(kib)};
  if (!result.holds) {
    result.detail += "; set it to " + std::to_string(wanted) + " or more for " +
                     std::to_string(expected.connections) +
                     " connections (--connections) and for refilling the reserve";
  }
  return result;
}

Protection check_reserve(uint64_t ready, uint64_t wanted) {
  Protection result{"reserve", ready >= wanted, format_size_rounded(ready) + " ready"};
  if (!result.holds) result.detail += " of " + format_size_rounded(wanted) + "; free some memory";
  return result;
}

}  // namespace

// --- Task flags ----------------------------------------------------------------------------------

// "7 (name) S 1 …": the name may hold blanks and brackets; flags are the 9th field.
bool parse_task_stat(const std::string& text, std::string& name, uint64_t& flags) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return false;
  name = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  std::string skipped;
  constexpr int kFieldsBetween = 6;  // state to tty's process group
  for (int i = 0; i < kFieldsBetween; ++i)
    rest >> skipped;
  return static_cast<bool>(rest >> flags);
}

ThreadFlags read_thread_flags() {
  ThreadFlags result;
  for_each_task([&result](pid_t, const std::string& text) {
    std::string name;
    uint64_t flags = 0;
    if (!parse_task_stat(text, name, flags)) return;
    ++result.threads;
    constexpr uint64_t kBoth = kMemallocNoio | kLocalThrottle;
    if ((flags & kBoth) == kBoth) return;
    if (result.unprotected++ == 0) result.first_unprotected = name;
  });
  return result;
}

// --- The protections -----------------------------------------------------------------------------

void SwapProtection::claim() {
  if (mode_ == ProtectionMode::off) return;
  if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) != 0) {
    flusher_refusal_ = "PR_SET_IO_FLUSHER: " + error_text();
  }
  oom_refusal_ = protect_from_oom();
  tame_libc();
  lock_what_comes();
}

// As it is touched (MCL_ONFAULT), or the pool's address space, which is many times the machine's
// memory, would be filled at once.
void SwapProtection::lock_what_comes() {
  if (!may_lock_any_amount()) {
    // The limit counts addresses, reserved ones too: the pool would not find any.
    lock_refusal_ =
        "this process may not lock as much as it has to: it needs CAP_IPC_LOCK, or no limit "
        "(ulimit -l unlimited, LimitMEMLOCK=infinity)";
  } else if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) {
    lock_refusal_ = "mlockall: " + error_text();
  }
}

Protection SwapProtection::check_lock(const std::vector<AddressRange>& filled_later) const {
  Protection result;
  result.name = "memory_lock";
  uint64_t locked = 0;
  uint64_t unlocked = 0;
  for (const Mapping& mapping : own_mappings()) {
    if (!mapping.may_be_touched() || is_the_kernels(mapping)) continue;
    (mapping.has_flag("lo") ? locked : unlocked) += mapping.resident_bytes;
    // What comes later is to be locked as well, though nothing of it may be there yet.
    if (!mapping.has_flag("lo") && overlaps_any(mapping, filled_later)) unlocked += kPageSize;
  }
  result.holds = lock_refusal_.empty() && unlocked == 0;
  result.detail = format_size_rounded(locked) + " resident and locked";
  if (unlocked != 0) result.detail += ", " + format_size_rounded(unlocked) + " not";
  if (!lock_refusal_.empty()) result.detail += "; " + lock_refusal_;
  return result;
}

Status SwapProtection::complete(const Expected& expected) {
  if (mode_ == ProtectionMode::off) return std::nullopt;
  const std::vector<AddressRange>& filled_later = expected.filled_later;
  const std::string refused = populate_all(filled_later);
  if (!lock_refusal_.empty()) {
    // What fits the limit: at least that stays.
    for (const Mapping& mapping : own_mappings()) {
      if (has_to_be_resident(mapping, filled_later))
        static_cast<void>(mlock(address_of(mapping), mapping.bytes()));
    }
  }
  list_ = {check_lock(filled_later),
           check_residence(refused, filled_later),
           check_reserve(expected.reserve_ready_bytes, expected.reserve_wanted_bytes),
           check_min_free(expected, mode_ == ProtectionMode::strict),
           check_flusher(flusher_refusal_),
           check_oom(oom_refusal_)};
  // Without --swap stores bring memory themselves; they would take it from the replies.
  if (mode_ != ProtectionMode::strict) return std::nullopt;
  list_.push_back(put_serving_threads_first());
  std::string missing;
  for (const Protection& one : list_) {
    if (!one.holds) missing += (missing.empty() ? "" : "; ") + one.name + " (" + one.detail + ")";
  }
  if (missing.empty()) return std::nullopt;
  return Error{Errc::invalid,
               "--swap: not serving, because this could hang or lose the machine that swaps onto "
               "it. Missing: " +
                   missing + ". --lock-memory serves with what there is"};
}

}  // namespace tuck::cli

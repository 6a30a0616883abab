#include "base/sync_point.h"

#if defined(TUCK_SYNC_POINTS)

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace tuck {
namespace {

// Many times what the slowest machine under the slowest sanitizer needs between two steps of a
// schedule.
constexpr std::chrono::seconds kPatience{60};

// Read by every point, before anything else.
std::atomic<uint32_t> stops_set{0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

uint64_t this_thread() noexcept {
  return std::hash<std::thread::id>{}(std::this_thread::get_id());
}

}  // namespace

// std::mutex, not Mutex: a point may lie in Mutex itself, and under locks of every rank.
struct SyncStop::Registry {
  std::mutex lock;
  std::condition_variable changed;
  SyncStop* first = nullptr;

  static Registry& instance() {
    static Registry registry;
    return registry;
  }
};

void reach_sync_point(const char* name) noexcept {
  // relaxed: whoever made the stop started the thread that is to stop here after that, or waits
  // until some thread comes by.
  if (stops_set.load(std::memory_order_relaxed) == 0) return;
  auto& registry = SyncStop::Registry::instance();
  std::unique_lock guard(registry.lock);
  SyncStop* stop = registry.first;
  for (; stop != nullptr; stop = stop->next_) {
    if (stop->reached_ || stop->let_go_ || stop->owner_ == this_thread()) continue;
    if (std::strcmp(stop->name_, name) != 0) continue;
    if (stop->passes_ == 0) break;
    --stop->passes_;
  }
  if (stop == nullptr) return;
  stop->reached_ = stop->inside_ = true;
  registry.changed.notify_all();
  if (!registry.changed.wait_for(guard, kPatience, [&] { return stop->let_go_; })) {
    std::fprintf(stderr, "tuck: sync point %s: nobody let the thread go\n", name);
    check_failed("a schedule lets its threads go", __FILE__, __LINE__);
  }
  stop->inside_ = false;
  registry.changed.notify_all();
}

SyncStop::SyncStop(const char* name, uint32_t passes) noexcept
    : name_(name), owner_(this_thread()), passes_(passes) {
  Registry& registry = Registry::instance();
  const std::lock_guard guard(registry.lock);
  // At the end: of two stops at one point the older one is filled first.
  SyncStop** link = &registry.first;
  while (*link != nullptr)
    link = &(*link)->next_;
  *link = this;
  stops_set.fetch_add(1, std::memory_order_relaxed);
}

SyncStop::~SyncStop() {
  Registry& registry = Registry::instance();
  std::unique_lock guard(registry.lock);
  let_go_ = true;
  registry.changed.notify_all();
  registry.changed.wait(guard, [this] { return !inside_; });
  SyncStop** link = &registry.first;
  while (*link != this)
    link = &(*link)->next_;
  *link = next_;
  stops_set.fetch_sub(1, std::memory_order_relaxed);
}

bool SyncStop::wait_until_reached() noexcept {
  return wait_for_any({this}) == this;
}

bool SyncStop::reached() const noexcept {
  const std::lock_guard guard(Registry::instance().lock);
  return reached_;
}

void SyncStop::let_go() noexcept {
  Registry& registry = Registry::instance();
  const std::lock_guard guard(registry.lock);
  let_go_ = true;
  registry.changed.notify_all();
}

const SyncStop* SyncStop::wait_for_any(std::initializer_list<SyncStop*> stops) noexcept {
  Registry& registry = Registry::instance();
  std::unique_lock guard(registry.lock);
  const auto reached = [&] {
    return std::find_if(stops.begin(), stops.end(), [](const SyncStop* s) { return s->reached_; });
  };
  registry.changed.wait_for(guard, kPatience, [&] { return reached() != stops.end(); });
  const auto* const found = reached();
  return found == stops.end() ? nullptr : *found;
}

void SyncStop::let_all_go() noexcept {
  Registry& registry = Registry::instance();
  const std::lock_guard guard(registry.lock);
  for (SyncStop* stop = registry.first; stop != nullptr; stop = stop->next_)
    stop->let_go_ = true;
  registry.changed.notify_all();
}

}  // namespace tuck

#endif

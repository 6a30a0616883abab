#include "frontends/cli/serving_end.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "frontends/cli/service_manager.h"
#include "frontends/cli/swap_users.h"

namespace tuck::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Whether ending now would take away memory that somebody has swapped out to us. With --swap that
// is what clients are for, and one whose connections are gone for a moment is still in /proc/swaps;
// without it, it may be so while this machine swaps to an NBD disk and somebody uses one of ours.
bool is_swapped_to(const ServeSettings& settings, const nbd::Server& server) try {
  const nbd::ServerReport report = server.report();
  if (!report.complete) return true;
  if (settings.protection == ProtectionMode::strict) {
    return report.connections_now != 0 || !nbd_swap_devices().empty();
  }
  return report.connections_serving != 0 && !nbd_swap_devices().empty();
} catch (const std::bad_alloc&) {
  // No memory to look with is when somebody is most likely to be swapped out.
  return true;
}

void tell_why(const std::string& reason, uint64_t clients) try {
  spdlog::warn(
      "{}: not stopping yet: {} connections use the disk and may have swapped out to it, which "
      "would be lost; waiting for them to go (swapoff DEVICE, then nbd-client -d DEVICE; swap on "
      "NBD "
      "here: {}); SIGQUIT stops at once",
      reason, clients, fmt::join(nbd_swap_devices(), " "));
} catch (const std::bad_alloc&) {
  // It is told again with the next signal.
}

}  // namespace

std::string wait_for_end(StopSignals& signals, ControlServer* control, int done_fd,
                         std::chrono::milliseconds at_most) {
  const Clock::time_point end = Clock::now() + at_most;
  const auto time_left = [&]() -> int {
    const int control_time = control != nullptr ? control->timeout() : -1;
    if (at_most.count() < 0) return control_time;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    const int own = static_cast<int>(std::max<int64_t>(left.count(), 0));
    return control_time < 0 ? own : std::min(own, control_time);
  };
  std::vector<pollfd> waits;
  waits.reserve(3 + ControlServer::kConnectionsMax);
  while (true) {
    waits.clear();
    waits.push_back({.fd = signals.fd(), .events = POLLIN, .revents = 0});
    waits.push_back({.fd = done_fd, .events = POLLIN, .revents = 0});
    if (control != nullptr) control->add(waits);
    if (poll(waits.data(), waits.size(), time_left()) < 0 && errno != EINTR) {
      // The kernel has no memory to wait with, which is no reason to stop serving.
      spdlog::error("poll: {}; trying again", std::strerror(errno));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      for (pollfd& wait : waits)
        wait.revents = 0;
    }
    if (std::string name = signals.take_name(); !name.empty()) return name;
    if (waits[1].revents != 0) return "";
    if (control != nullptr) control->handle(waits);
    if (at_most.count() >= 0 && Clock::now() >= end) return "";
  }
}

std::string stay_while_swapped_to(std::string reason, const ServeSettings& settings,
                                  const nbd::Server& server, StopSignals& signals,
                                  ControlServer* control) {
  constexpr std::chrono::seconds kLook{1};
  uint64_t told_clients = 0;
  std::string signal = reason;
  while (reason != kStopAtOnce && is_swapped_to(settings, server)) {
    const uint64_t clients = server.report().connections_now;
    if (clients != told_clients || !signal.empty()) {
      tell_why(reason, clients);
      told_clients = clients;
    }
    notify_waiting("Waiting for swap to be taken off the disk");
    signal = wait_for_end(signals, control, -1, kLook);
    if (!signal.empty()) reason = signal;
  }
  return reason;
}

}  // namespace tuck::cli

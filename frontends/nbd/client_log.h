// Log lines about clients: a client must not be able to fill the log. Nothing that a client sent is
// ever part of a line; reasons are constant text of ours.
#pragma once

#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "frontends/nbd/clock.h"

namespace tuck::nbd {

class ClientLog {
 public:
  // The log's own parts are made on its first use, which allocates: not by a thread that serves.
  ClientLog() { static_cast<void>(spdlog::default_logger_raw()); }

  // At most kBurst lines at once and kBurst a ten seconds' time; the rest is counted and mentioned.
  template <class... Args>
  void write(spdlog::level::level_enum level, spdlog::format_string_t<Args...> format,
             Args&&... args) noexcept {
    if (!spdlog::should_log(level) || !may_write()) return;
    if (const uint64_t left_out = left_out_.exchange(0, std::memory_order_relaxed)) {
      spdlog::warn("{} lines about clients were left out: too many at once", left_out);
    }
    spdlog::log(level, format, std::forward<Args>(args)...);
  }

 private:
  static constexpr uint64_t kBurst = 20;
  static constexpr uint64_t kPeriodNs = 10'000'000'000;

  bool may_write() noexcept {
    const uint64_t now = now_ns();
    uint64_t start = period_start_.load(std::memory_order_relaxed);
    if (now - start >= kPeriodNs &&
        period_start_.compare_exchange_strong(start, now, std::memory_order_relaxed)) {
      written_.store(0, std::memory_order_relaxed);
    }
    if (written_.fetch_add(1, std::memory_order_relaxed) < kBurst) return true;
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  std::atomic<uint64_t> period_start_{0};
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> left_out_{0};
};

}  // namespace tuck::nbd

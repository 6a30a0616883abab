// One thread with one ring, and the connections that were given to it. A loop is: submit and wait
// (one system call), take all completions, give each connection that has something to do one turn.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>

#include "frontends/nbd/client_log.h"
#include "frontends/nbd/connection.h"
#include "frontends/nbd/counters.h"
#include "frontends/nbd/ring.h"

namespace tuck::nbd {

struct WorkerOptions {
  std::span<const Export> exports;
  unsigned connections_max = 0;
  std::chrono::nanoseconds negotiation_time_max{};
  NegotiationLimits negotiation;
  StallLimits stall;
  std::chrono::nanoseconds poll_time{};
  ClientLog* log = nullptr;
  // Takes a connection back when its client is gone. Called by the worker.
  std::function<void(Connection&)> give_back;
};

class Worker {
 public:
  explicit Worker(WorkerOptions options);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // Makes the ring; in the thread that is to run it, before everything else.
  Status open();
  // The loop, until stop() was called and all clients are gone.
  void run() noexcept;

  // --- Any thread ----------------------------------------------------------------------------
  // A connection that is new here, or whose ticket has been notified.
  void post(Connection& connection) noexcept;
  // Connections finish what they have read, and close within the given time.
  void stop(std::chrono::nanoseconds grace) noexcept;
  // acquire: who finds connections gone sees what they did; pairs with the release where they go.
  unsigned load() const noexcept { return load_.load(std::memory_order_acquire); }
  const WorkerCounters& counters() const noexcept { return counters_; }
  // Before post(): the load counts from then on.
  void expect_one() noexcept { load_.fetch_add(1, std::memory_order_relaxed); }

  // --- For its connections -------------------------------------------------------------------
  const WorkerOptions& options() const noexcept { return options_; }
  WorkerCounters& counters() noexcept { return counters_; }
  ClientLog& log() noexcept { return *options_.log; }
  // It has something to do: a turn in this round, or in the next one if it is having one now.
  void make_ready(Connection& connection) noexcept;
  // on_tick() is called from now on for as long as wants_ticks() is true.
  void want_ticks() noexcept;
  void submit_receive(Connection& connection, int fd, bool socket,
                      std::span<std::byte> into) noexcept;
  void submit_send(Connection& connection, int fd, bool socket,
                   std::span<const std::byte> bytes) noexcept;
  void cancel_receive(Connection& connection) noexcept;
  void cancel_send(Connection& connection) noexcept;
  // When the current round of completions was taken.
  uint64_t now() const noexcept { return now_; }
  void closed(Connection& connection) noexcept;

 private:
  // In the low bits of an operation's user data; the rest is the connection.
  enum class Event : uint64_t { wake, receive, send, tick, cancelled };

  static uint64_t tag(const Connection* connection, Event event) noexcept;
  void on_completion(uint64_t user_data, int result) noexcept;
  void cancel(Connection& connection, Event event) noexcept;
  void arm_wake() noexcept;
  void tick() noexcept;
  void open_inbox() noexcept;
  void begin_stop() noexcept;
  void run_ready() noexcept;
  void wait() noexcept;
  bool poll() noexcept;
  // Whether it worked.
  bool write_wake() noexcept;

  WorkerOptions options_;
  Ring ring_;
  int wake_fd_ = -1;
  uint64_t wake_value_ = 0;
  WorkerCounters counters_;

  // Connections posted by other threads; the last one first.
  std::atomic<Connection*> inbox_{nullptr};
  // Threads that are inside post(): the worker stays until they have left.
  std::atomic<unsigned> posting_{0};
  std::atomic<unsigned> load_{0};
  std::atomic<bool> stop_asked_{false};
  // The worker was not woken for what is in the inbox: the next one who posts tries again.
  std::atomic<bool> wake_lost_{false};
  std::atomic<int64_t> grace_ns_{0};

  // The loop's own.
  uint64_t now_ = 0;
  Connection* ready_head_ = nullptr;
  Connection* ready_tail_ = nullptr;
  Connection* open_head_ = nullptr;
  uint64_t stop_deadline_ = 0;  // 0: not stopping
  bool wake_armed_ = false;
  bool tick_armed_ = false;
  __kernel_timespec tick_time_{};
  // How many times in a row polling has found nothing.
  unsigned useless_polls_ = 0;
};

}  // namespace tuck::nbd

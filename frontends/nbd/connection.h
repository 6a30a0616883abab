// One client: its descriptors, its buffers, and where it stands between hello and goodbye. Lives in
// a fixed place for as long as the server; one client after the other uses it. Everything here runs
// on the worker that the client was given to, except hand_over() and the notification of a ticket.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "frontends/nbd/buffers.h"
#include "frontends/nbd/negotiation.h"
#include "frontends/nbd/transmission.h"

namespace tuck::nbd {

class Worker;

class alignas(64) Connection {
 public:
  Connection() noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void set_buffers(const ConnectionBuffers& buffers) noexcept { buffers_ = buffers; }
  // Before the worker sees it: the descriptors (owned from now on) and a number for the log.
  void hand_over(Worker& worker, int input_fd, int output_fd, uint64_t number) noexcept;

  // --- Called by the worker ------------------------------------------------------------------
  void start(uint64_t now) noexcept;
  // Works on what there is; one turn.
  void run() noexcept;
  void on_received(int result) noexcept;
  void on_sent(int result) noexcept;
  // The ticket was notified.
  void on_woken() noexcept;
  // Now and then, while wants_ticks().
  void on_tick(uint64_t now) noexcept;
  // No more requests; finish by then.
  void drain(uint64_t deadline) noexcept;
  bool started() const noexcept { return phase_ != Phase::idle; }
  bool wants_ticks() const noexcept { return deadline_ != 0 || retry_receive_ || retry_send_; }

  // --- Links of the worker's lists -----------------------------------------------------------
  std::atomic<Connection*> next_in_inbox{nullptr};
  Connection* next_ready = nullptr;
  bool is_ready = false;
  Connection* next_open = nullptr;
  Connection* previous_open = nullptr;

 private:
  enum class Phase : uint8_t {
    idle,  // no client
    negotiating,
    transmission,
    closing,  // sends what there is, then closes
  };

  static void ticket_notified(engine::Ticket& ticket) noexcept;

  Progress negotiate() noexcept;
  void react(Progress progress) noexcept;
  void begin_transmission() noexcept;
  void receive() noexcept;
  void receive_ahead() noexcept;
  void send() noexcept;
  void count_failure() noexcept;
  void blame(const char* reason) noexcept;
  void hung_up_or_lost(const char* how) noexcept;
  void close_when_sent() noexcept;
  void lost(int error) noexcept;
  void give_up() noexcept;
  void finish_if_done() noexcept;

  Worker* worker_ = nullptr;
  ConnectionBuffers buffers_;
  engine::Ticket ticket_;

  int input_fd_ = -1;
  int output_fd_ = -1;
  bool is_socket_ = false;
  uint64_t number_ = 0;

  Phase phase_ = Phase::idle;
  bool receiving_ = false;       // a receive is under way in the ring
  bool sending_ = false;         // a send is
  bool parked_ = false;          // the ticket has not come back yet; READs go on
  bool wants_room_ = false;      // goes on when something has been sent
  bool draining_ = false;        // takes no more requests
  bool hung_up_ = false;         // the client sends no more
  bool discard_output_ = false;  // nothing more is sent
  bool failure_counted_ = false;
  bool retry_receive_ = false;  // not possible now: again at the next tick
  bool retry_send_ = false;
  uint64_t deadline_ = 0;  // of negotiating or closing; 0: none

  ReceiveBuffer in_;
  SendBuffers out_;
  std::optional<Negotiation> negotiation_;
  std::optional<Transmission> transmission_;
};

}  // namespace tuck::nbd

// One client: its descriptors, its buffers, and where it stands between hello and goodbye. Lives in
// a fixed place for as long as the server; one client after the other uses it. Everything here runs
// on the worker that the client was given to, except hand_over() and the notification of a ticket.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "frontends/nbd/buffers.h"
#include "frontends/nbd/connection_memory.h"
#include "frontends/nbd/negotiation.h"
#include "frontends/nbd/peer.h"
#include "frontends/nbd/transmission.h"

namespace tuck::nbd {

class Worker;

class alignas(64) Connection final : private Admission {
 public:
  Connection() noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The memory outlives the connection.
  void set_memory(ConnectionMemory& memory) noexcept { memory_ = &memory; }
  // Before the worker sees it: the descriptors (owned from now on), a number for the log, and who
  // the client is.
  void hand_over(Worker& worker, int input_fd, int output_fd, uint64_t number,
                 std::optional<Peer> peer) noexcept;

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
  bool wants_ticks() const noexcept {
    return deadline_ != 0 || retry_receive_ || retry_send_ || may_stall_in_request() ||
           may_stall_replies();
  }

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

  bool admit() noexcept override;
  Progress negotiate() noexcept;
  void react(Progress progress) noexcept;
  void begin_transmission() noexcept;
  void receive() noexcept;
  void receive_ahead() noexcept;
  void send() noexcept;
  bool may_stall_in_request() const noexcept;
  bool may_stall_replies() const noexcept;
  const char* stalled(uint64_t now) noexcept;
  void count_failure() noexcept;
  void blame(const char* reason) noexcept;
  void hung_up_or_lost(const char* how) noexcept;
  void close_when_sent() noexcept;
  void lost(int error) noexcept;
  void give_up() noexcept;
  void finish_if_done() noexcept;

  Worker* worker_ = nullptr;
  ConnectionMemory* memory_ = nullptr;
  engine::Ticket ticket_;

  int input_fd_ = -1;
  int output_fd_ = -1;
  bool is_socket_ = false;
  uint64_t number_ = 0;
  std::optional<Peer> peer_;

  Phase phase_ = Phase::idle;
  bool receiving_ = false;       // a receive is under way in the ring
  bool sending_ = false;         // a send is
  bool parked_ = false;          // the ticket has not come back yet; READs go on
  bool wants_room_ = false;      // goes on when something has been sent
  bool wants_input_ = false;     // goes on when more has come
  bool draining_ = false;        // takes no more requests
  bool hung_up_ = false;         // the client sends no more
  bool discard_output_ = false;  // nothing more is sent
  bool failure_counted_ = false;
  bool retry_receive_ = false;  // not possible now: again at the next tick
  bool retry_send_ = false;
  uint64_t deadline_ = 0;  // of negotiating or closing; 0: none
  // Since then not one byte has come, or gone: valid while wants_input_, or sending_.
  uint64_t wanting_since_ = 0;
  uint64_t sending_since_ = 0;
  bool suspected_ = false;  // it was found over a limit, at one tick

  ReceiveBuffer in_;
  SendBuffers out_;
  NegotiationPlace negotiation_;
  TransmissionPlace transmission_;
};

}  // namespace tuck::nbd

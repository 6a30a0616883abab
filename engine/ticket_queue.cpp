#include "engine/ticket_queue.h"

namespace tuck::engine {

void TicketQueue::add(Ticket& ticket) noexcept {
  MutexLock guard(lock_);
  TUCK_DCHECK(!ticket.waiting());
  ticket.queue_ = this;
  ticket.next_ = first_;
  first_ = &ticket;
  ticket.waiting_.store(true, std::memory_order_release);
}

void TicketQueue::notify_all() noexcept {
  Ticket* with_callback = nullptr;
  {
    MutexLock guard(lock_);
    Ticket* ticket = first_;
    first_ = nullptr;
    while (ticket != nullptr) {
      Ticket* const next = ticket->next_;
      if (ticket->notify_ != nullptr) {
        ticket->next_ = with_callback;
        with_callback = ticket;
      } else {
        ticket->waiting_.store(false, std::memory_order_release);
      }
      ticket = next;
    }
    changed_.notify_all();
  }
  while (with_callback != nullptr) {
    Ticket& ticket = *with_callback;
    with_callback = ticket.next_;
    ticket.waiting_.store(false, std::memory_order_release);
    // The last touch: the callback may end the ticket's life.
    ticket.notify_(ticket);
  }
}

void TicketQueue::wait(Ticket& ticket) noexcept {
  MutexLock guard(lock_);
  while (ticket.waiting())
    changed_.wait(lock_);
}

bool TicketQueue::empty() const noexcept {
  MutexLock guard(lock_);
  return first_ == nullptr;
}

void Ticket::wait() noexcept {
  if (queue_ != nullptr) queue_->wait(*this);
}

}  // namespace tuck::engine

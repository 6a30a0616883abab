// A fixed array of things that are claimed by compare-and-swap for the length of a call: codec
// contexts, scratch buffers. Works in a signal handler and needs no thread registration; a claim
// can nest (the interrupted thread keeps its own).
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/backoff.h"

namespace tuck {

// Where a thread starts to look, so that threads on different processors seldom meet and one
// processor finds its own, warm, line again. 4 lines a processor: room for preempted holders.
inline uint32_t claim_hint() noexcept {
  return static_cast<uint32_t>(::sched_getcpu()) * 4;
}

template <class T>
class ClaimArray {
  struct Line;

 public:
  // Owns the claimed element until destroyed.
  class Claim {
   public:
    Claim(Claim&& other) noexcept : line_(other.line_) { other.line_ = nullptr; }
    Claim& operator=(Claim&&) = delete;
    ~Claim() {
      // Pairs with the exchange in claim().
      if (line_ != nullptr) line_->taken.store(false, std::memory_order_release);
    }
    T& operator*() const noexcept { return line_->value; }
    T* operator->() const noexcept { return &line_->value; }

   private:
    friend class ClaimArray;
    explicit Claim(Line* line) noexcept : line_(line) {}
    Line* line_;
  };

  explicit ClaimArray(uint32_t count) : count_(count), lines_(new Line[count]) {}

  // Any free element; waits while all are taken.
  Claim claim() noexcept {
    Backoff backoff;
    for (uint32_t i = claim_hint();; ++i) {
      if (try_take(lines_[i % count_])) return Claim(&lines_[i % count_]);
      if (i % count_ == count_ - 1) backoff.pause();
    }
  }
  // Element i and no other; waits while it is taken. For changing all elements one by one.
  Claim claim_at(uint32_t i) noexcept {
    Backoff backoff;
    while (!try_take(lines_[i]))
      backoff.pause();
    return Claim(&lines_[i]);
  }
  uint32_t count() const noexcept { return count_; }

 private:
  struct alignas(64) Line {
    std::atomic<bool> taken{false};
    T value{};
  };

  static bool try_take(Line& line) noexcept {
    // acquire: sees what the last claimer did; pairs with the release in ~Claim.
    return !line.taken.load(std::memory_order_relaxed) &&
           !line.taken.exchange(true, std::memory_order_acquire);
  }

  const uint32_t count_;
  const std::unique_ptr<Line[]> lines_;
};

}  // namespace tuck

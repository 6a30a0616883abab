#include "base/epoch.h"

#include <algorithm>

#include "base/backoff.h"
#include "base/check.h"
#include "base/claim_array.h"
#include "base/sync_point.h"

namespace tuck {

uint32_t Epochs::enter() noexcept {
  Backoff backoff;
  for (uint32_t i = claim_hint();; ++i) {
    auto& word = lines_[i % kLines].word;
    uint64_t expected = kFree;
    if (word.load(std::memory_order_relaxed) == kFree) {
      // By the time that it is written it may be an old one: that only holds back more.
      const uint64_t epoch = current_.load(std::memory_order_seq_cst);
      TUCK_SYNC_POINT("base.epochs.epoch_read");
      if (word.compare_exchange_strong(expected, epoch, std::memory_order_seq_cst)) {
        return i % kLines;
      }
    }
    if (i % kLines == kLines - 1) backoff.pause();
  }
}

bool Epochs::try_claim_idle(uint32_t line) noexcept {
  uint64_t expected = kFree;
  return lines_[line].word.compare_exchange_strong(expected, kIdle, std::memory_order_acquire,
                                                   std::memory_order_relaxed);
}

void Epochs::step_out(uint32_t line) noexcept {
  TUCK_DCHECK(lines_[line].word.load(std::memory_order_relaxed) >= kFirst);
  lines_[line].word.store(kIdle, std::memory_order_release);
}

void Epochs::step_in(uint32_t line) noexcept {
  TUCK_DCHECK(lines_[line].word.load(std::memory_order_relaxed) == kIdle);
  lines_[line].word.store(current_.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
}

void Epochs::leave(uint32_t line) noexcept {
  TUCK_DCHECK(lines_[line].word.load(std::memory_order_relaxed) != kFree);
  lines_[line].word.store(kFree, std::memory_order_release);
}

uint64_t Epochs::oldest() const noexcept {
  uint64_t oldest = UINT64_MAX;
  for (const Line& line : lines_) {
    // seq_cst includes acquire: what a call read before it left happens before the reuse.
    const uint64_t word = line.word.load(std::memory_order_seq_cst);
    if (word >= kFirst) oldest = std::min(oldest, word);
  }
  return oldest;
}

}  // namespace tuck

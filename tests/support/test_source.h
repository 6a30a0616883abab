// A memory source for tests: fails or waits when told to, checks that it is used as its contract
// says, and takes every access away from frames that nobody populated or that were released, so
// that a touch of one of them ends the test there and then.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_source.h"

namespace tuck::test {

class TestSource final : public MemorySource {
 public:
  // Reservations whose purpose contains one of these words may be read where they are not populated
  // (as zeroes); all others are guarded.
  explicit TestSource(std::vector<std::string> unguarded_purposes = {});
  // All reservations must have been given back.
  ~TestSource() override;

  Result<std::byte*, Error> reserve(size_t bytes, const char* purpose) noexcept override;
  void unreserve(std::byte* at, size_t bytes) noexcept override;
  Errc populate(std::byte* at, size_t bytes) noexcept override;
  void release(std::byte* at, size_t bytes) noexcept override;

  // The n-th populate from now on (1: the next one) fails, once or with all that follow it.
  void fail_populate(uint64_t nth, bool all_that_follow);
  // The same for reserve.
  void fail_reserve(uint64_t nth);
  void fail_nothing();
  // Populates wait from now on, until let_populate().
  void hold_populate();
  void let_populate();
  // populate() fails when more than this would be populated in the reservations that purpose names.
  void limit_populated(std::string_view purpose, uint64_t bytes);

  uint64_t populate_calls() const;
  uint64_t reserve_calls() const;
  // Populates that are waiting now.
  uint32_t held() const;
  uint64_t failures() const;
  // Bytes populated in reservations whose purpose contains the word ("" for all).
  uint64_t populated_bytes(std::string_view purpose = "") const;
  // What the kernel says of the same reservations.
  uint64_t resident_bytes(std::string_view purpose = "") const;
  // The same of the one reservation that begins at this address.
  uint64_t populated_bytes_at(const std::byte* at) const;
  uint64_t resident_bytes_at(const std::byte* at) const;
  // The purposes of what is reserved now.
  std::vector<std::string> purposes() const;

 private:
  struct Free {
    void operator()(void* at) const { std::free(at); }
  };
  struct Reservation {
    std::byte* at = nullptr;
    size_t bytes = 0;
    std::string purpose;
    bool guarded = true;
    uint64_t populated = 0;
    // One byte a frame: 0 nothing, 1 populated, 2 being worked on.
    std::unique_ptr<uint8_t[], Free> frames;

    bool contains(const std::byte* begin, size_t length) const {
      return begin >= at && begin + length <= at + bytes;
    }
    bool is_for(std::string_view word) const { return purpose.find(word) != std::string::npos; }
  };

  // Both with mutex_ held.
  Reservation& find(const std::byte* at, size_t bytes, const char* call);
  void mark(Reservation& reservation, const std::byte* at, size_t bytes, uint8_t from, uint8_t to,
            const char* call);
  bool must_fail(const Reservation& reservation, size_t bytes);
  uint64_t populated_locked(std::string_view purpose) const;

  const std::vector<std::string> unguarded_;
  AnonymousMemorySource system_;
  mutable std::mutex mutex_;
  std::condition_variable let_go_;
  std::vector<Reservation> reservations_;
  uint64_t populates_ = 0;
  uint64_t reserves_ = 0;
  uint64_t failures_ = 0;
  uint64_t fail_populate_at_ = 0;  // 0: never
  bool fail_all_that_follow_ = false;
  uint64_t fail_reserve_at_ = 0;
  std::string limited_purpose_;
  uint64_t limit_ = UINT64_MAX;
  bool holding_ = false;
  uint32_t held_ = 0;
};

}  // namespace tuck::test

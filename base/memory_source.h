// Where the pool's memory comes from: address space reserved once, frames populated and released in
// ranges. Tests put a source that fails or delays in its place.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace tuck {

// Common preconditions: addresses and lengths are multiples of the system's page size, and a range
// lies inside one reservation. Every function may be called from any thread; ranges that are worked
// on at the same time do not overlap.
class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;

  // Reserves address space that holds nothing yet. purpose is a constant text for messages.
  virtual Result<std::byte*, Error> reserve(size_t bytes, const char* purpose) noexcept = 0;
  // pre: the whole of one reservation.
  virtual void unreserve(std::byte* at, size_t bytes) noexcept = 0;

  // Puts frames, all zeroes, behind a range that holds none, so that touching it faults no more.
  // no_space: the system gives none; the range then holds nothing, as before.
  virtual Errc populate(std::byte* at, size_t bytes) noexcept = 0;
  // Gives the range's frames back to the system; it reads as zeroes afterwards.
  virtual void release(std::byte* at, size_t bytes) noexcept = 0;
};

// Private anonymous memory without transparent huge pages (a huge page would make frames resident
// that nobody populated).
class AnonymousMemorySource final : public MemorySource {
 public:
  Result<std::byte*, Error> reserve(size_t bytes, const char* purpose) noexcept override;
  void unreserve(std::byte* at, size_t bytes) noexcept override;
  Errc populate(std::byte* at, size_t bytes) noexcept override;
  void release(std::byte* at, size_t bytes) noexcept override;
};

// An array of T over reserved address space, of which a prefix or any whole pages are populated. An
// element that was never written is all zero bytes, which must be a valid T.
template <class T>
class ReservedArray {
 public:
  static Result<ReservedArray, Error> create(MemorySource& source, size_t count,
                                             const char* purpose) {
    const size_t bytes = (count * sizeof(T) + kGrain - 1) / kGrain * kGrain;
    auto at = source.reserve(bytes, purpose);
    if (!at) return at.error();
    return ReservedArray(source, *at, bytes);
  }
  ReservedArray(ReservedArray&& other) noexcept
      : source_(other.source_), at_(other.at_), bytes_(other.bytes_) {
    other.at_ = nullptr;
  }
  ReservedArray& operator=(ReservedArray&&) = delete;
  ~ReservedArray() {
    if (at_ != nullptr) source_->unreserve(at_, bytes_);
  }

  // The system's page, in bytes: what is populated at once.
  static constexpr size_t kGrain = 4096;

  T& operator[](size_t index) const noexcept { return reinterpret_cast<T*>(at_)[index]; }
  // Populates bytes [from, to) of the array; both multiples of kGrain.
  Errc populate_bytes(size_t from, size_t to) const noexcept {
    return source_->populate(at_ + from, to - from);
  }
  std::byte* bytes() const noexcept { return at_; }
  size_t size_bytes() const noexcept { return bytes_; }

 private:
  ReservedArray(MemorySource& source, std::byte* at, size_t bytes) noexcept
      : source_(&source), at_(at), bytes_(bytes) {}

  MemorySource* source_;
  std::byte* at_;
  size_t bytes_;
};

}  // namespace tuck

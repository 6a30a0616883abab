#include "tests/support/test_source.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>

#include "base/types.h"
#include "tests/support/resident.h"

namespace tuck::test {
namespace {

constexpr uint8_t kNothing = 0;
constexpr uint8_t kPopulated = 1;
constexpr uint8_t kBusy = 2;

[[noreturn]] void misuse(const char* call, const char* what, const std::byte* at, size_t bytes) {
  std::fprintf(stderr, "memory source: %s(%p, %zu): %s\n", call, static_cast<const void*>(at),
               bytes, what);
  std::abort();
}

void protect(std::byte* at, size_t bytes, int protection) {
  if (::mprotect(at, bytes, protection) != 0) misuse("mprotect", "refused", at, bytes);
}

}  // namespace

TestSource::TestSource(std::vector<std::string> unguarded_purposes)
    : unguarded_(std::move(unguarded_purposes)) {}

TestSource::~TestSource() {
  for (const Reservation& left : reservations_) {
    misuse("~TestSource", ("never unreserved: " + left.purpose).c_str(), left.at, left.bytes);
  }
}

Result<std::byte*, Error> TestSource::reserve(size_t bytes, const char* purpose) noexcept {
  const std::lock_guard lock(mutex_);
  ++reserves_;
  if (fail_reserve_at_ != 0 && reserves_ == fail_reserve_at_) {
    ++failures_;
    return Error{Errc::no_space, std::string("told to reserve nothing for ") + purpose};
  }
  if (bytes == 0 || bytes % kPageSize != 0) misuse("reserve", "odd size", nullptr, bytes);
  // A page more at each end, replaced by a mapping of another sort: what runs over an end is
  // stopped, and the kernel does not merge the reservation with its neighbours (its figures are
  // ours alone).
  auto outer = system_.reserve(bytes + 2 * kPageSize, purpose);
  if (!outer) return outer;
  std::byte* const at = *outer + kPageSize;
  for (std::byte* const fence : {*outer, at + bytes}) {
    if (::mmap(fence, kPageSize, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
      misuse("mmap", "refused", fence, kPageSize);
    }
  }
  Reservation reservation;
  reservation.at = at;
  reservation.bytes = bytes;
  reservation.purpose = purpose;
  reservation.guarded = std::none_of(unguarded_.begin(), unguarded_.end(),
                                     [&](const auto& word) { return reservation.is_for(word); });
  reservation.frames.reset(static_cast<uint8_t*>(std::calloc(bytes / kPageSize, 1)));
  if (reservation.guarded) protect(at, bytes, PROT_NONE);
  reservations_.push_back(std::move(reservation));
  return at;
}

void TestSource::unreserve(std::byte* at, size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(reservations_.begin(), reservations_.end(),
                   [&](const Reservation& r) { return r.at == at && r.bytes == bytes; });
  if (found == reservations_.end()) misuse("unreserve", "no such reservation", at, bytes);
  reservations_.erase(found);
  system_.unreserve(at - kPageSize, bytes + 2 * kPageSize);
}

Errc TestSource::populate(std::byte* at, size_t bytes) noexcept {
  bool guarded = true;
  {
    std::unique_lock lock(mutex_);
    Reservation& reservation = find(at, bytes, "populate");
    guarded = reservation.guarded;
    mark(reservation, at, bytes, kNothing, kBusy, "populate");
    ++populates_;
    ++held_;
    let_go_.wait(lock, [&] { return !holding_; });
    --held_;
    // Looked up again: others may have reserved meanwhile.
    Reservation& same = find(at, bytes, "populate");
    if (must_fail(same, bytes)) {
      ++failures_;
      mark(same, at, bytes, kBusy, kNothing, "populate");
      return Errc::no_space;
    }
    same.populated += bytes;
  }
  if (guarded) protect(at, bytes, PROT_READ | PROT_WRITE);
  const Errc code = system_.populate(at, bytes);
  if (code != Errc::ok && guarded) protect(at, bytes, PROT_NONE);
  const std::lock_guard lock(mutex_);
  Reservation& reservation = find(at, bytes, "populate");
  mark(reservation, at, bytes, kBusy, code == Errc::ok ? kPopulated : kNothing, "populate");
  if (code != Errc::ok) reservation.populated -= bytes;
  return code;
}

void TestSource::release(std::byte* at, size_t bytes) noexcept {
  bool guarded = true;
  {
    const std::lock_guard lock(mutex_);
    Reservation& reservation = find(at, bytes, "release");
    guarded = reservation.guarded;
    mark(reservation, at, bytes, kPopulated, kBusy, "release");
    reservation.populated -= bytes;
  }
  system_.release(at, bytes);
  if (guarded) protect(at, bytes, PROT_NONE);
  const std::lock_guard lock(mutex_);
  mark(find(at, bytes, "release"), at, bytes, kBusy, kNothing, "release");
}

TestSource::Reservation& TestSource::find(const std::byte* at, size_t bytes, const char* call) {
  if (bytes == 0 || bytes % kPageSize != 0 || reinterpret_cast<uintptr_t>(at) % kPageSize != 0) {
    misuse(call, "not whole pages", at, bytes);
  }
  const auto found = std::find_if(reservations_.begin(), reservations_.end(),
                                  [&](const Reservation& r) { return r.contains(at, bytes); });
  if (found == reservations_.end()) misuse(call, "not inside one reservation", at, bytes);
  return *found;
}

void TestSource::mark(Reservation& reservation, const std::byte* at, size_t bytes, uint8_t from,
                      uint8_t to, const char* call) {
  uint8_t* const first =
      reservation.frames.get() + static_cast<size_t>(at - reservation.at) / kPageSize;
  for (uint8_t* frame = first; frame != first + bytes / kPageSize; ++frame) {
    if (*frame != from) {
      misuse(call,
             *frame == kBusy        ? "a frame that another call is working on"
             : *frame == kPopulated ? "a frame that is populated already"
                                    : "a frame that is not populated",
             at, bytes);
    }
    *frame = to;
  }
}

bool TestSource::must_fail(const Reservation& reservation, size_t bytes) {
  if (fail_populate_at_ != 0 &&
      (fail_all_that_follow_ ? populates_ >= fail_populate_at_ : populates_ == fail_populate_at_)) {
    return true;
  }
  return limit_ != UINT64_MAX && reservation.is_for(limited_purpose_) &&
         populated_locked(limited_purpose_) + bytes > limit_;
}

void TestSource::fail_populate(uint64_t nth, bool all_that_follow) {
  const std::lock_guard lock(mutex_);
  fail_populate_at_ = populates_ + nth;
  fail_all_that_follow_ = all_that_follow;
}

void TestSource::fail_reserve(uint64_t nth) {
  const std::lock_guard lock(mutex_);
  fail_reserve_at_ = reserves_ + nth;
}

void TestSource::fail_nothing() {
  const std::lock_guard lock(mutex_);
  fail_populate_at_ = 0;
  fail_reserve_at_ = 0;
  limit_ = UINT64_MAX;
}

void TestSource::hold_populate() {
  const std::lock_guard lock(mutex_);
  holding_ = true;
}

void TestSource::let_populate() {
  const std::lock_guard lock(mutex_);
  holding_ = false;
  let_go_.notify_all();
}

void TestSource::limit_populated(std::string_view purpose, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  limited_purpose_ = purpose;
  limit_ = bytes;
}

uint64_t TestSource::populate_calls() const {
  const std::lock_guard lock(mutex_);
  return populates_;
}

uint64_t TestSource::reserve_calls() const {
  const std::lock_guard lock(mutex_);
  return reserves_;
}

uint32_t TestSource::held() const {
  const std::lock_guard lock(mutex_);
  return holding_ ? held_ : 0;
}

uint64_t TestSource::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

uint64_t TestSource::populated_locked(std::string_view purpose) const {
  uint64_t bytes = 0;
  for (const Reservation& reservation : reservations_) {
    if (reservation.is_for(purpose)) bytes += reservation.populated;
  }
  return bytes;
}

uint64_t TestSource::populated_bytes(std::string_view purpose) const {
  const std::lock_guard lock(mutex_);
  return populated_locked(purpose);
}

uint64_t TestSource::resident_bytes(std::string_view purpose) const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const Reservation& reservation : reservations_) {
    if (reservation.is_for(purpose))
      bytes += test::resident_bytes(reservation.at, reservation.bytes);
  }
  return bytes;
}

uint64_t TestSource::populated_bytes_at(const std::byte* at) const {
  const std::lock_guard lock(mutex_);
  for (const Reservation& reservation : reservations_) {
    if (reservation.at == at) return reservation.populated;
  }
  misuse("populated_bytes_at", "no such reservation", at, 0);
}

uint64_t TestSource::resident_bytes_at(const std::byte* at) const {
  const std::lock_guard lock(mutex_);
  for (const Reservation& reservation : reservations_) {
    if (reservation.at == at) return test::resident_bytes(reservation.at, reservation.bytes);
  }
  misuse("resident_bytes_at", "no such reservation", at, 0);
}

std::vector<std::string> TestSource::purposes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const Reservation& reservation : reservations_)
    names.push_back(reservation.purpose);
  return names;
}

}  // namespace tuck::test

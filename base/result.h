// Errors are values. Errc travels on the I/O path (no allocation); Error, with a sentence for a
// person, is for set-up: what was wrong, what to do.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace tuck {

enum class Errc : uint8_t {
  ok,
  no_space,      // the memory limit is reached, or the system gives no memory; nothing else changed
  pending,       // needs I/O or room that is on its way: the ticket says when to call again
  changed,       // store_if: an entry was not what the caller had seen
  out_of_range,  // beyond the end of the area, or no such area
  corrupt,       // stored bytes did not decode: an error, never other bytes
  invalid,       // an argument that no caller may pass
  shutting_down,  // the engine is going away
};

// One word for logs and statistics.
const char* name_of(Errc code) noexcept;

struct Error {
  Errc code = Errc::invalid;
  std::string message;  // one sentence: what was wrong, what to do
};

// A value or an error; never both, never neither.
template <class T, class E = Errc>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(E error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const noexcept { return value_.has_value(); }
  bool ok() const noexcept { return value_.has_value(); }
  // Only after ok().
  T& operator*() noexcept { return *value_; }
  const T& operator*() const noexcept { return *value_; }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }
  // Only after !ok().
  const E& error() const noexcept { return error_; }

 private:
  std::optional<T> value_;
  E error_{};
};

// Success without a value, or a sentence about what went wrong.
using Status = std::optional<Error>;

// no_space, with a message that says what there was no memory for, or a shorter one where there is
// none for that either.
Error no_memory_for(const char* what) noexcept;
Error no_thread_for(const char* what, const std::system_error& failure) noexcept;

// What f returns (a Result or a Status), or no_space where the standard library had no memory or no
// thread to give: it says so by exception, and no exception crosses a façade. what is a constant
// text for the message: "the server".
template <class F>
auto or_no_memory(const char* what, F&& f) noexcept -> decltype(f()) {
  try {
    return std::forward<F>(f)();
  } catch (const std::bad_alloc&) {
    return no_memory_for(what);
  } catch (const std::system_error& failure) {
    return no_thread_for(what, failure);
  }
}

}  // namespace tuck

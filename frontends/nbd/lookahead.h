// Which READ of a connection may be served before the requests in front of it.
//
// Swap-in waits for its READ, nobody waits for a WRITE: so a READ overtakes the WRITEs, TRIMs and
// WRITE_ZEROES that came before it on its connection and are not finished, unless one of them
// touches a byte of its range. Those keep their order, and a client that writes and then reads a
// place sees what it wrote, whether it waits for replies or not. All other requests keep theirs.
//
// A READ that was served ahead of its turn leaves its place in the stream in a list of
// kReadsAheadMax places, and keeps it until the requests in front of it are done. So no request is
// ever overtaken by more than kReadsAheadMax READs, of at most kReadAheadBytesMax each, however
// many of them come, and whenever they come.
//
// Each header is parsed here once, and once more when its turn comes: what has been looked at is
// not looked at again, but for the one at which a full list made the search stop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "frontends/nbd/buffers.h"
#include "frontends/nbd/request.h"

namespace tuck::nbd {

// How many READs may be ahead of one request.
inline constexpr size_t kReadsAheadMax = 64;
// Longer READs are bulk, and nobody's page fault: they keep their place.
inline constexpr uint32_t kReadAheadBytesMax = kWholeReadBytesMax;
// How many requests with a range to keep clear of are looked past. A receive has 63 WRITEs of 4
// KiB.
inline constexpr size_t kLookedPastMax = 128;

// First in, first out, without allocation. N is a power of two.
template <class T, size_t N>
class FixedQueue {
  static_assert((N & (N - 1)) == 0);

 public:
  size_t size() const noexcept { return end_ - begin_; }
  bool empty() const noexcept { return begin_ == end_; }
  bool full() const noexcept { return size() == N; }
  const T& front() const noexcept { return items_[begin_ % N]; }
  const T& at(size_t index) const noexcept { return items_[(begin_ + index) % N]; }
  void push(const T& item) noexcept { items_[end_++ % N] = item; }
  void pop() noexcept { ++begin_; }

 private:
  std::array<T, N> items_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

// Places are positions in the stream of bytes that the client sends, counted from the first
// request.
class Lookahead {
 public:
  struct Found {
    Request request;
    uint64_t end = 0;  // the place behind its header
  };

  // From now on find() may look at so many headers, all calls together.
  void allow(uint32_t headers) noexcept { headers_left_ = headers; }

  // Whether the request at this place, whose turn it is, was served before. Asked once a place, in
  // order.
  bool was_served(uint64_t place) noexcept {
    if (served_.empty() || served_.front() != place) return false;
    served_.pop();
    return true;
  }
  // It is the turn of this request, which modifies its range: all requests in front of it are done,
  // and it is the first that can be overtaken, until the next call.
  void turn_of(const Request& request, uint64_t place) noexcept;
  // The first READ that may overtake everything since turn_of() and was not served yet. unread
  // begins at `place`. It counts as served from now on.
  std::optional<Found> find(std::span<const std::byte> unread, uint64_t place,
                            const Negotiated& negotiated) noexcept;

 private:
  // What a request modifies.
  struct Range {
    uint64_t place;
    uint64_t begin;
    uint64_t end;
  };

  bool keeps_clear(const Request& read) const noexcept;
  void keep_clear_of(const Request& request, uint64_t place) noexcept;

  FixedQueue<uint64_t, kReadsAheadMax> served_;
  FixedQueue<Range, kLookedPastMax> ranges_;
  uint64_t next_ = 0;  // the place of the next header to look at
  uint32_t headers_left_ = 0;
  bool at_the_end_ = false;  // what comes there ends the connection
};

}  // namespace tuck::nbd

// An oracle for the allocator: every object that lives, with each of its bytes tagged.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "allocator/allocator.h"
#include "tests/support/seed.h"
#include "tests/support/test_source.h"

namespace tuck::allocator::test {

using tuck::test::Random;
using tuck::test::TestSource;

// Sizes as they come from pages: mostly some hundred bytes to a page, now and then very small or
// very large ones.
inline uint32_t random_payload(Random& random) {
  constexpr uint32_t kLargest = kObjectBytesMax - static_cast<uint32_t>(sizeof(ObjectHeader));
  switch (random.below(16)) {
    case 0:
      return static_cast<uint32_t>(random.between(1, 64));
    case 1:
      return kFrameSize;
    case 2:
      return static_cast<uint32_t>(random.between(kFrameSize, kLargest));
    case 3:
      return random.one_in(8) ? kLargest : static_cast<uint32_t>(random.between(1, 4096));
    default:
      return static_cast<uint32_t>(random.between(100, 4096));
  }
}

// Written to each byte of an object, and expected there until it is freed.
inline std::byte tag_byte(uint64_t tag, uint32_t at) {
  return static_cast<std::byte>((tag * 0x9e37'79b9u + at * 31 + (at >> 8)) & 0xff);
}

inline void write_tag(Allocator& allocator, const Object& object, uint64_t tag) {
  std::byte* const payload = allocator.payload(object.location);
  for (uint32_t i = 0; i < object.payload_bytes; ++i)
    payload[i] = tag_byte(tag, i);
}

inline bool has_tag(const Allocator& allocator, const Object& object, uint64_t tag) {
  const std::byte* const payload = allocator.payload(object.location);
  for (uint32_t i = 0; i < object.payload_bytes; ++i) {
    if (payload[i] != tag_byte(tag, i)) {
      ADD_FAILURE() << "byte " << i << " of " << object.payload_bytes << " at location "
                    << object.location << " was changed";
      return false;
    }
  }
  return true;
}

class Model {
 public:
  Model(Allocator& allocator, uint64_t seed) : allocator_(allocator), random_(seed) {}

  // Whether it succeeded; errors other than no_space and pending are failures.
  Errc allocate(uint32_t payload_bytes) {
    const uint64_t tag = ++tags_;
    const Owner owner{AreaId{static_cast<uint16_t>(tag % 4096)},
                      SlotIndex{static_cast<uint32_t>(tag * 77)}};
    const auto location = allocator_.allocate(payload_bytes, owner);
    if (!location) return location.error();
    const Object object{*location, payload_bytes};
    expect_apart(object);
    EXPECT_EQ(allocator_.header(*location).owner(), owner);
    write_tag(allocator_, object, tag);
    live_.emplace(*location, Live{object, owner, tag});
    payload_bytes_ += payload_bytes;
    return Errc::ok;
  }

  // Frees so many objects, any, in one batch.
  void free_some(size_t count) {
    std::vector<Object> batch;
    while (batch.size() < count && !live_.empty()) {
      auto found = live_.lower_bound(random_.below(live_.rbegin()->first + 1));
      if (found == live_.end()) found = live_.begin();
      check(found->second);
      batch.push_back(found->second.object);
      payload_bytes_ -= found->second.object.payload_bytes;
      live_.erase(found);
    }
    for (size_t i = batch.size(); i > 1; --i)
      std::swap(batch[i - 1], batch[random_.below(i)]);
    allocator_.free(batch);
  }
  // Those for which keep(object) is false, in one batch.
  template <class Keep>
  void free_unless(Keep keep) {
    std::vector<Object> batch;
    for (auto at = live_.begin(); at != live_.end();) {
      if (keep(at->second.object)) {
        ++at;
        continue;
      }
      check(at->second);
      batch.push_back(at->second.object);
      payload_bytes_ -= at->second.object.payload_bytes;
      at = live_.erase(at);
    }
    allocator_.free(batch);
  }
  void free_all() {
    free_unless([](const Object&) { return false; });
  }

  // Every byte of every object, and the allocator's own equations.
  void check_all() const {
    for (const auto& [location, live] : live_)
      check(live);
    allocator_.verify();
    const Ledger ledger = allocator_.ledger();
    EXPECT_EQ(ledger.payload_bytes, payload_bytes_);
    EXPECT_EQ(ledger.header_bytes, live_.size() * sizeof(ObjectHeader));
    uint64_t objects = 0;
    for (const ClassLedger& line : ledger.classes)
      objects += line.objects;
    EXPECT_EQ(objects, live_.size());
    EXPECT_EQ(ledger.resident_bytes(), allocator_.resident_bytes());
  }

  size_t count() const { return live_.size(); }
  uint64_t payload_bytes() const { return payload_bytes_; }
  Random& random() { return random_; }

 private:
  struct Live {
    Object object;
    Owner owner;
    uint64_t tag = 0;
  };

  static uint64_t end_of(const Object& object) {
    return object.location * 8 + sizeof(ObjectHeader) + object.payload_bytes;
  }

  // Inside the pool, and clear of both neighbours.
  void expect_apart(const Object& object) const {
    EXPECT_LE(end_of(object), allocator_.pool_range().size());
    const auto after = live_.lower_bound(object.location);
    if (after != live_.end()) {
      EXPECT_LE(end_of(object), after->first * 8);
    }
    if (after != live_.begin()) {
      EXPECT_LE(end_of(std::prev(after)->second.object), object.location * 8);
    }
  }

  void check(const Live& live) const {
    EXPECT_EQ(allocator_.header(live.object.location).owner(), live.owner);
    has_tag(allocator_, live.object, live.tag);
  }

  Allocator& allocator_;
  Random random_;
  std::map<uint64_t, Live> live_;
  uint64_t payload_bytes_ = 0;
  uint64_t tags_ = 0;
};

// The ledger against what the source gave and the kernel says.
inline void expect_ledger_is_true(const Allocator& allocator, const TestSource& source) {
  const Ledger ledger = allocator.ledger();
  const std::byte* const pool = allocator.pool_range().data();
  EXPECT_EQ(ledger.pool_bytes(), source.populated_bytes_at(pool));
  EXPECT_EQ(ledger.resident_bytes(), source.populated_bytes());
  EXPECT_EQ(ledger.pool_bytes(), source.resident_bytes_at(pool));
  EXPECT_EQ(ledger.resident_bytes(), source.resident_bytes());
}

inline std::unique_ptr<Allocator> make_allocator(const AllocatorOptions& options) {
  auto allocator = Allocator::create(options);
  if (!allocator) {
    ADD_FAILURE() << allocator.error().message;
    std::abort();
  }
  return std::move(*allocator);
}

}  // namespace tuck::allocator::test

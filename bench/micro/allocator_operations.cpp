// The allocator alone, on a pool in which places became free at random, as in use.
#include <span>
#include <utility>

#include "allocator/allocator.h"
#include "bench/corpus/synthetic_kinds.h"
#include "bench/micro/operation.h"

namespace tuck::bench::micro {

namespace {

using allocator::Allocator;
using allocator::AllocatorOptions;
using allocator::Object;

constexpr uint32_t kBatch = 4096;
// As the engine frees: what one epoch of a free of a leaf retires.
constexpr size_t kFreedAtOnce = 512;
// Of an object; lz4 leaves pages of this size and smaller.
constexpr uint32_t kPayloadMax = 3072;

// Objects of all sizes, full at first. In each round some of them, at random, are freed and made
// anew, of the same size.
class Pool : public Work {
 public:
  explicit Pool(uint64_t objects) : objects_(objects) {
    AllocatorOptions options;
    options.memory = &memory_;
    options.address_space_bytes = 4 * objects * kPageSize;
    auto pool = Allocator::create(options);
    TUCK_CHECK(pool);
    pool_ = std::move(*pool);
    for (Object& object : objects_) {
      object.payload_bytes = 1 + static_cast<uint32_t>(random_.below(kPayloadMax));
      allocate(object);
    }
    choose();
  }

 protected:
  void allocate(Object& object) noexcept {
    const auto location = pool_->allocate(object.payload_bytes, {AreaId{1}, SlotIndex{2}});
    TUCK_CHECK(location);
    object.location = *location;
  }
  void allocate_chosen() noexcept {
    for (Object& object : chosen())
      allocate(object);
  }
  void free_chosen_one_by_one() noexcept {
    for (const Object& object : chosen())
      pool_->free(std::span(&object, 1));
  }
  void free_chosen_batched() noexcept {
    for (size_t at = 0; at < kBatch; at += kFreedAtOnce)
      pool_->free(chosen().subspan(at, kFreedAtOnce));
  }
  void replace_chosen() noexcept {
    for (Object& object : chosen()) {
      pool_->free(std::span(&object, 1));
      allocate(object);
    }
  }
  // Which ones are next. All objects live meanwhile.
  void choose() noexcept {
    for (size_t i = 0; i < kBatch; ++i) {
      const auto other = i + static_cast<size_t>(random_.below(objects_.size() - i));
      std::swap(objects_[i], objects_[other]);
    }
  }

 private:
  std::span<Object> chosen() noexcept { return std::span(objects_).first(kBatch); }

  AnonymousMemorySource memory_;
  std::unique_ptr<Allocator> pool_;
  corpus::Random random_{1};
  std::vector<Object> objects_;
};

class Allocate : public Pool {
 public:
  using Pool::Pool;
  void prepare() override {
    choose();
    free_chosen_batched();
  }
  void run() override { allocate_chosen(); }
};

class FreeOneByOne : public Pool {
 public:
  explicit FreeOneByOne(uint64_t objects) : Pool(objects) { free_chosen_one_by_one(); }
  void prepare() override {
    allocate_chosen();
    choose();
  }
  void run() override { free_chosen_one_by_one(); }
};

class FreeBatched : public Pool {
 public:
  explicit FreeBatched(uint64_t objects) : Pool(objects) { free_chosen_batched(); }
  void prepare() override {
    allocate_chosen();
    choose();
  }
  void run() override { free_chosen_batched(); }
};

class Replace : public Pool {
 public:
  using Pool::Pool;
  void prepare() override { choose(); }
  void run() override { replace_chosen(); }
};

template <class T>
std::unique_ptr<Work> make(uint64_t objects) {
  return std::make_unique<T>(objects);
}

}  // namespace

std::vector<Operation> allocator_operations() {
  const std::string objects = "objects of 1 to 3072 bytes";
  return {
      {"allocator/allocate", objects, kBatch, false, make<Allocate>},
      {"allocator/free", objects, kBatch, false, make<FreeOneByOne>},
      {"allocator/free_batched", objects, kBatch, false, make<FreeBatched>},
      {"allocator/free_and_allocate", objects, kBatch, true, make<Replace>},
  };
}

}  // namespace tuck::bench::micro

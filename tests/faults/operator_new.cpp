// The C++ language's allocation functions, in all their forms, so that they can be made to fail.
#include <cstdlib>
#include <new>

#include "tests/faults/wrapped_calls.h"

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (!tuck::test::may_allocate()) return nullptr;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const at = allocate(bytes, alignment);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

constexpr std::size_t kPlain = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

std::size_t number(std::align_val_t alignment) {
  return static_cast<std::size_t>(alignment);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, kPlain);
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes, kPlain);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, number(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, number(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kPlain);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kPlain);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, number(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return allocate(bytes, number(alignment));
}

void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete[](void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}
void operator delete[](void* at, std::size_t) noexcept {
  std::free(at);
}
void operator delete(void* at, std::align_val_t) noexcept {
  std::free(at);
}
void operator delete[](void* at, std::align_val_t) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t, std::align_val_t) noexcept {
  std::free(at);
}
void operator delete[](void* at, std::size_t, std::align_val_t) noexcept {
  std::free(at);
}
void operator delete(void* at, const std::nothrow_t&) noexcept {
  std::free(at);
}
void operator delete[](void* at, const std::nothrow_t&) noexcept {
  std::free(at);
}

// Every call that the server, the engine and the allocator make to the system goes through a
// wrapper here (the linker's --wrap; the product's code is the same as ever), which can make it
// fail: the n-th one, once or from then on.
//
// What a ring is asked to do counts as a call as well: "recv", "send", "uring_read",
// "uring_write", "timeout", "cancel". The operation is then not carried out, and completes with the
// error. "operator_new" is that of the C++ language, in all its forms.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tuck::test {

struct Fault {
  std::string_view call;
  uint64_t nth = 1;  // counted from arm() on
  int error = 0;
  bool for_good = false;
};

// All that there are.
std::span<const std::string_view> wrapped_calls();

// One at a time. The wrappers count from here on.
void arm(const Fault& fault);
void lift();
// How many calls were made to fail since arm().
uint64_t hits();
// How often it was called since arm().
uint64_t calls_of(std::string_view call);

// Counts a call of operator new. False: it must fail.
bool may_allocate();

// Bytes mapped by mmap and not unmapped yet.
int64_t mapped_bytes();

// While it lives, calls of this thread are neither counted nor do they fail: the test's own.
class Immune {
 public:
  Immune();
  ~Immune();
  Immune(const Immune&) = delete;
  Immune& operator=(const Immune&) = delete;
};

// While it lives, an immune thread is not: around a call of the product.
class Exposed {
 public:
  Exposed();
  ~Exposed();
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;

 private:
  int was_immune_;
};

}  // namespace tuck::test

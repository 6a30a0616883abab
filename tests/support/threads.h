// Starts threads that begin together, and waits for them.
#pragma once

#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

namespace tuck::test {

// Calls body(0) … body(count − 1), each on a thread of its own.
template <class Body>
void run_threads(uint32_t count, Body body) {
  std::barrier together(static_cast<std::ptrdiff_t>(count));
  std::vector<std::jthread> threads;
  threads.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      together.arrive_and_wait();
      body(i);
    });
  }
}

}  // namespace tuck::test

// A heap in a process of its own: objects of given sizes in a malloc, or pages in tuck's engine.
// What the kernel says the process holds is then the heap's.
#pragma once

#include <cstdint>
#include <string>

#include "bench/frame/process.h"

namespace tuck::bench {

struct Heap {
  // A malloc: the file that is loaded before the C library's ("libjemalloc.so.2"); empty: the C
  // library's own.
  std::string library;
  // The engine instead of a malloc.
  bool is_engine = false;
  std::string codec;  // the engine only; empty: the one that it takes when none is named
};

// What every heap is filled with.
struct HeapContent {
  std::string pages_file;  // raw pages; the engine stores them
  std::string sizes_file;  // a uint32_t a page: what it compresses to. A malloc's objects
  unsigned copies = 1;     // of all of them
};

// Main thread only.
class HeapSubject {
 public:
  // Errors: the library is not installed, or the process does not start.
  static Result<HeapSubject, Error> start(const Heap& heap, const HeapContent& content);

  // Payload in bytes: what the engine's compressed pages, or a malloc's objects, have in them.
  Result<uint64_t, Error> fill();
  // Frees every object that is_freed(); the payload that is left.
  Result<uint64_t, Error> free_half(uint64_t seed);
  // Beyond what the process held before there was a heap; tables and all that the heap needs for
  // itself are in it.
  uint64_t resident_bytes() const;

 private:
  explicit HeapSubject(Child child) : child_(std::move(child)) {}
  Result<uint64_t, Error> answer_to(const std::string& command, const std::string& word);

  Child child_;
  uint64_t empty_bytes_ = 0;
};

// Whether the object (of so many) is in the half that a seed stands for: a coin for each.
inline bool is_freed(uint64_t seed, uint64_t object) noexcept {
  // The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
  // Generators, 2014).
  uint64_t mixed = (seed + 1) * 0x9E3779B97F4A7C15ull + object * 0xD1B54A32D192ED03ull;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBull;
  return ((mixed ^ (mixed >> 31)) & 1) != 0;
}

}  // namespace tuck::bench

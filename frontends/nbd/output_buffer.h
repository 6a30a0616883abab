// Where answers are put together: a caller's memory of fixed size. Whoever appends has looked at
// room() before; appending more than that stops the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/base.h"
#include "frontends/nbd/protocol.h"

namespace tuck::nbd {

struct OutputBuffer {
  std::byte* data = nullptr;
  size_t capacity = 0;
  size_t size = 0;

  OutputBuffer(std::byte* memory, size_t bytes) noexcept : data(memory), capacity(bytes) {}
  explicit OutputBuffer(std::span<std::byte> memory) noexcept
      : data(memory.data()), capacity(memory.size()) {}

  size_t room() const noexcept { return capacity - size; }
  std::span<const std::byte> bytes() const noexcept { return {data, size}; }
  void clear() noexcept { size = 0; }

  // Makes the next bytes part of the buffer; the caller fills them in.
  std::byte* extend(size_t bytes) noexcept {
    TUCK_CHECK(bytes <= room());
    std::byte* at = data + size;
    size += bytes;
    return at;
  }
  void put16(uint16_t value) noexcept { store16(extend(sizeof value), value); }
  void put32(uint32_t value) noexcept { store32(extend(sizeof value), value); }
  void put64(uint64_t value) noexcept { store64(extend(sizeof value), value); }
  void put_text(std::string_view text) noexcept {
    std::byte* at = extend(text.size());
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
  }
  void put_zeroes(size_t bytes) noexcept { std::memset(extend(bytes), 0, bytes); }
};

}  // namespace tuck::nbd

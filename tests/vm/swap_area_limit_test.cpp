// Bytes at the memory limit: room that a trim has made is there for parts of pages too.
#include <gtest/gtest.h>

#include <array>

#include "frontends/vm/vm.h"
#include "tests/support/pages.h"
#include "tests/support/seed.h"

namespace tuck::vm::test {
namespace {

using tuck::test::Random;
using tuck::test::seed;

TEST(SwapAreaLimit, PartOfAPageFindsTheRoomThatATrimMade) {
  engine::EngineOptions options;
  options.memory_limit_bytes = 8u << 20;
  options.background_thread = false;
  auto engine = engine::Engine::create(options);
  ASSERT_TRUE(engine) << engine.error().message;
  constexpr uint32_t kSlots = 8192;
  const auto area = (*engine)->add_area({.name = "disk", .slots = kSlots, .codec = {}});
  ASSERT_TRUE(area);
  SwapArea disk(**engine, *area, uint64_t{kSlots} * kPageSize);

  Random random(seed());
  std::array<std::byte, kPageSize> page;
  const auto fresh_page = [&] {
    for (std::byte& byte : page)
      byte = static_cast<std::byte>(random.below32(256));
  };
  uint64_t full = 0;
  for (;; ++full) {
    fresh_page();
    if (disk.write(full * kPageSize, page).code != Errc::ok) break;
  }
  ASSERT_GT(full, 1000u);
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t offset = i * 3 * kPageSize;
    ASSERT_EQ(disk.trim(offset, kPageSize).code, Errc::ok);
    fresh_page();
    const std::span<const std::byte> part = std::span(page).first(4000);
    const ByteResult written = disk.write(offset + 8, part);
    ASSERT_EQ(written.code, Errc::ok) << "step " << i << ": " << name_of(written.code);
    std::array<std::byte, 4000> out;
    ASSERT_EQ(disk.read(offset + 8, out).code, Errc::ok);
    ASSERT_TRUE(std::equal(out.begin(), out.end(), part.begin()));
  }
  (*engine)->verify();
}

}  // namespace
}  // namespace tuck::vm::test

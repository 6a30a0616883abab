// The swap area's byte calls against a flat array of bytes, and its folios.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "frontends/vm/swap_area.h"
#include "tests/support/pages.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/test_source.h"

namespace tuck::vm::test {
namespace {

using engine::Engine;
using tuck::test::PageKey;
using tuck::test::PageKind;
using tuck::test::Pages;
using tuck::test::Random;
using tuck::test::scaled;
using tuck::test::seed;
using tuck::test::TestSource;

// What a disk of bytes would hold, and what each page counts as.
class Disk {
 public:
  explicit Disk(uint64_t bytes)
      : bytes_(bytes), kinds_((bytes + kPageSize - 1) / kPageSize, ExtentKind::hole) {}

  void write(uint64_t offset, std::span<const std::byte> data) {
    if (data.empty()) return;
    if (data.empty()) return;
    std::copy(data.begin(), data.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    for (uint64_t page = offset / kPageSize; page * kPageSize < offset + data.size(); ++page) {
      look(page);
    }
  }
  void zero(uint64_t offset, uint64_t length, bool keep_allocated) {
    if (length == 0) return;
    if (length == 0) return;
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), length, std::byte{0});
    for (uint64_t page = offset / kPageSize; page * kPageSize < offset + length; ++page) {
      const bool whole = page * kPageSize >= offset && (page + 1) * kPageSize <= offset + length;
      if (whole && !keep_allocated) {
        kinds_[page] = ExtentKind::hole;
      } else {
        look(page);
      }
    }
  }
  // Up to `done` bytes of the range: whole pages alone become holes.
  void trim(uint64_t offset, uint64_t done) {
    const uint64_t end = offset + done;
    for (uint64_t page = (offset + kPageSize - 1) / kPageSize; page < kinds_.size(); ++page) {
      const uint64_t page_end = std::min<uint64_t>((page + 1) * kPageSize, bytes_.size());
      if (page_end > end) break;
      std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(page * kPageSize),
                bytes_.begin() + static_cast<std::ptrdiff_t>(page_end), std::byte{0});
      kinds_[page] = ExtentKind::hole;
    }
  }
  std::span<const std::byte> range(uint64_t offset, uint64_t length) const {
    return std::span(bytes_).subspan(offset, length);
  }
  ExtentKind kind_at(uint64_t offset) const { return kinds_[offset / kPageSize]; }
  uint64_t size() const { return bytes_.size(); }

 private:
  void look(uint64_t page) {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(page * kPageSize);
    const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(
                                          (page + 1) * kPageSize, bytes_.size()));
    const bool zero = std::all_of(begin, end, [](std::byte b) { return b == std::byte{0}; });
    kinds_[page] = zero ? ExtentKind::zero : ExtentKind::data;
  }

  std::vector<std::byte> bytes_;
  std::vector<ExtentKind> kinds_;
};

struct Fixture {
  explicit Fixture(uint64_t bytes, uint64_t limit = 0) : size(bytes) {
    engine::EngineOptions options;
    options.memory = &source;
    options.background_thread = false;
    options.reserve_bytes = 1u << 20;
    options.memory_limit_bytes = limit;
    auto made = Engine::create(options);
    EXPECT_TRUE(made.ok());
    engine = std::move(*made);
    engine::AreaOptions area_options;
    area_options.slots = (bytes + kPageSize - 1) / kPageSize;
    area = *engine->add_area(area_options);
  }
  SwapArea open() { return SwapArea(*engine, area, size); }

  TestSource source;
  std::unique_ptr<Engine> engine;
  AreaId area{};
  uint64_t size;
};

struct Range {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Aligned and not, within a page and over many, to the very end and of no length.
Range random_range(Random& random, uint64_t size) {
  uint64_t offset = random.below(size + 1);
  if (random.one_in(3)) offset = offset / kPageSize * kPageSize;
  if (random.one_in(4)) offset = offset / 512 * 512;
  uint64_t length = 0;
  switch (random.below(6)) {
    case 0:
      length = random.below(16);
      break;
    case 1:
      length = random.below(kPageSize + 1);
      break;
    case 2:
      length = random.below(20) * kPageSize;
      break;
    case 3:
      length = size;
      break;
    default:
      length = random.below(8 * kPageSize);
      break;
  }
  return {offset, std::min(length, size - offset)};
}

std::vector<std::byte> random_bytes(Random& random, uint64_t length) {
  std::vector<std::byte> bytes(length);
  Pages page(kPageSize);
  for (uint64_t at = 0; at < length; at += kPageSize) {
    PageKey key{random.next(), 0, 0, 1};
    fill_page(key, kind_for(key), page.data());
    std::copy_n(page.begin(), std::min<uint64_t>(kPageSize, length - at),
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

void expect_same(SwapArea& area, const Disk& disk, Range range) {
  std::vector<std::byte> out(range.length, std::byte{0xee});
  const ByteResult read = area.read(range.offset, out);
  ASSERT_EQ(read.code, Errc::ok);
  ASSERT_EQ(read.bytes_done, range.length);
  const auto wanted = disk.range(range.offset, range.length);
  const auto [have, want] = std::mismatch(out.begin(), out.end(), wanted.begin());
  ASSERT_EQ(have, out.end()) << "byte " << range.offset + static_cast<uint64_t>(have - out.begin());
}

void expect_status(const SwapArea& area, const Disk& disk, Range range, size_t room) {
  std::vector<ByteExtent> extents(room);
  const size_t count = area.status(range.offset, range.length, extents);
  ASSERT_LE(count, room);
  if (range.length == 0) {
    ASSERT_EQ(count, 0u);
    return;
  }
  ASSERT_GE(count, 1u);
  uint64_t at = range.offset;
  for (size_t i = 0; i < count; ++i) {
    ASSERT_GT(extents[i].bytes, 0u);
    ASSERT_LE(extents[i].bytes, range.offset + range.length - at);
    for (uint64_t page = at / kPageSize; page * kPageSize < at + extents[i].bytes; ++page) {
      ASSERT_EQ(extents[i].kind, disk.kind_at(page * kPageSize)) << "page " << page;
    }
    if (i > 0) {
      ASSERT_NE(extents[i].kind, extents[i - 1].kind);
    }
    at += extents[i].bytes;
  }
  // Cut short only for want of room: the disk is small.
  if (at < range.offset + range.length) {
    ASSERT_EQ(count, room);
  }
}

// Calls that may stop early with ok are made again for the rest.
template <class Call>
void to_the_end(Range range, Call call) {
  while (range.length > 0) {
    const ByteResult result = call(range);
    ASSERT_EQ(result.code, Errc::ok);
    ASSERT_GT(result.bytes_done, 0u) << "no progress";
    ASSERT_LE(result.bytes_done, range.length);
    range.offset += result.bytes_done;
    range.length -= result.bytes_done;
  }
}

void step(SwapArea& area, Disk& disk, Random& random) {
  const Range range = random_range(random, disk.size());
  switch (random.below(8)) {
    case 0:
    case 1:
    case 2: {
      const auto data = random_bytes(random, range.length);
      const ByteResult written = area.write(range.offset, data);
      ASSERT_EQ(written.code, Errc::ok);
      ASSERT_EQ(written.bytes_done, range.length);
      disk.write(range.offset, data);
      return;
    }
    case 3: {
      const bool keep = random.one_in(2);
      to_the_end(range,
                 [&](Range rest) { return area.write_zeroes(rest.offset, rest.length, keep); });
      disk.zero(range.offset, range.length, keep);
      return;
    }
    case 4:
      to_the_end(range, [&](Range rest) { return area.trim(rest.offset, rest.length); });
      disk.trim(range.offset, range.length);
      return;
    case 5:
      expect_status(area, disk, range, random.between(1, 12));
      return;
    default:
      expect_same(area, disk, range);
      return;
  }
}

TEST(SwapArea, BytesAgainstAFlatArray) {
  for (const uint64_t size :
       {100 * uint64_t{kPageSize}, 60 * uint64_t{kPageSize} + 1, 33 * uint64_t{kPageSize} - 512,
        uint64_t{kPageSize}, uint64_t{100}, uint64_t{kPageSize} + 4095}) {
    Fixture fixture(size);
    SwapArea area = fixture.open();
    ASSERT_EQ(area.size_bytes(), size);
    Disk disk(size);
    Random random(seed() + size);
    for (uint32_t i = 0; i < scaled(3000); ++i) {
      step(area, disk, random);
      ASSERT_FALSE(HasFailure()) << "step " << i << " of a disk of " << size;
    }
    expect_same(area, disk, {0, size});
    fixture.engine->quiesce();
    fixture.engine->verify();
  }
}

TEST(SwapArea, OutOfRangeTouchesNothing) {
  constexpr uint64_t kSize = 10 * kPageSize + 100;
  Fixture fixture(kSize);
  SwapArea area = fixture.open();
  Disk disk(kSize);
  Random random(seed());
  const auto data = random_bytes(random, kSize);
  ASSERT_EQ(area.write(0, data).code, Errc::ok);
  disk.write(0, data);
  std::vector<std::byte> buffer(kSize + kPageSize, std::byte{0x33});
  for (const Range range :
       {Range{kSize, 1}, Range{0, kSize + 1}, Range{kSize + 1, 0}, Range{kSize - 1, 2},
        Range{UINT64_MAX, 1}, Range{UINT64_MAX - 5, 10}, Range{kPageSize, UINT64_MAX}}) {
    const ByteResult zeroed = area.write_zeroes(range.offset, range.length, false);
    EXPECT_EQ(zeroed.code, Errc::out_of_range);
    EXPECT_EQ(zeroed.bytes_done, 0u);
    EXPECT_EQ(area.trim(range.offset, range.length).code, Errc::out_of_range);
    std::array<ByteExtent, 2> extents;
    EXPECT_EQ(area.status(range.offset, range.length, extents), 0u);
    if (range.length > buffer.size()) continue;
    EXPECT_EQ(area.read(range.offset, std::span(buffer).first(range.length)).code,
              Errc::out_of_range);
    EXPECT_EQ(area.write(range.offset, std::span(buffer).first(range.length)).code,
              Errc::out_of_range);
  }
  EXPECT_TRUE(
      std::all_of(buffer.begin(), buffer.end(), [](auto b) { return b == std::byte{0x33}; }));
  expect_same(area, disk, {0, kSize});
  // Nothing at the very end is in range.
  EXPECT_EQ(area.read(kSize, {}).code, Errc::ok);
  EXPECT_EQ(area.write(kSize, {}).code, Errc::ok);
  EXPECT_EQ(area.trim(kSize, 0).code, Errc::ok);
}

// More pages than one call works through: each call says how far it got, and status too.
TEST(SwapArea, LargeRangesAreDoneInSteps) {
  constexpr uint64_t kPages = 3 * SwapArea::kPagesACall + 77;
  Fixture fixture(kPages * kPageSize);
  SwapArea area = fixture.open();
  Pages page(kPageSize);
  fill_page(PageKey{seed(), 0, 0, 1}, PageKind::text, page.data());
  for (uint64_t at = 5; at < kPages; at += 1000) {
    ASSERT_EQ(area.write(at * kPageSize, page).code, Errc::ok);
  }
  uint64_t data = 0;
  uint64_t at = 0;
  while (at < area.size_bytes()) {
    std::array<ByteExtent, 16> extents;
    const size_t count = area.status(at, area.size_bytes() - at, extents);
    ASSERT_GT(count, 0u);
    for (size_t i = 0; i < count; ++i) {
      at += extents[i].bytes;
      if (extents[i].kind == ExtentKind::data) data += extents[i].bytes;
    }
  }
  EXPECT_EQ(at, area.size_bytes());
  EXPECT_EQ(data, (kPages - 5 + 999) / 1000 * kPageSize);
  for (const bool keep : {true, false}) {
    to_the_end({1, area.size_bytes() - 1},
               [&](Range rest) { return area.write_zeroes(rest.offset, rest.length, keep); });
  }
  EXPECT_EQ(fixture.engine->stats().content.pages_stored, 1u) << "the page of byte 0 was merged";
  to_the_end({0, area.size_bytes()},
             [&](Range rest) { return area.trim(rest.offset, rest.length); });
  EXPECT_EQ(fixture.engine->stats().content.pages_stored, 0u);
  fixture.engine->quiesce();
  fixture.engine->verify();
}

TEST(SwapArea, FoliosOfEveryOrder) {
  Fixture fixture(2048 * uint64_t{kPageSize});
  SwapArea area = fixture.open();
  Pages data(size_t{512} * kPageSize);
  Pages out(data.size());
  for (uint32_t order = 0; order <= kFolioOrderMax; ++order) {
    const uint32_t pages = 1u << order;
    const SlotIndex slot{512u + 512u % pages};
    for (uint32_t i = 0; i < pages; ++i) {
      const PageKey key{seed(), order, i, 1};
      fill_page(key, kind_for(key), data.data() + size_t{i} * kPageSize);
    }
    ASSERT_EQ(area.store_folio(slot, order, data.data()), Errc::ok);
    ASSERT_EQ(area.load_run(slot, pages, out.data()).code, Errc::ok);
    EXPECT_EQ(std::memcmp(data.data(), out.data(), size_t{pages} * kPageSize), 0);
    ASSERT_EQ(area.free_run(slot, pages).code, Errc::ok);
    if (order > 0) {
      EXPECT_EQ(area.store_folio(slot + 1, order, data.data()), Errc::invalid) << "not aligned";
    }
  }
  for (const uint32_t order : {kFolioOrderMax + 1, 31u, 32u, 33u, 64u, UINT32_MAX}) {
    EXPECT_EQ(area.store_folio(SlotIndex{0}, order, data.data()), Errc::invalid) << order;
  }
  EXPECT_EQ(area.store_folio(SlotIndex{2048}, 0, data.data()), Errc::out_of_range);
  EXPECT_EQ(area.store_folio(SlotIndex{2048}, 9, data.data()), Errc::out_of_range);
  EXPECT_EQ(fixture.engine->stats().content.pages_stored, 0u);
}

// A folio that does not fit leaves nothing behind.
TEST(SwapArea, AFolioIsStoredWholeOrNotAtAll) {
  Fixture fixture(4096 * uint64_t{kPageSize}, 4u << 20);
  SwapArea area = fixture.open();
  Pages data(size_t{512} * kPageSize);
  for (uint32_t i = 0; i < 512; ++i) {
    const PageKey key{seed(), 0, i, 1};
    fill_page(key, i % 3 == 0 ? PageKind::same_word : PageKind::random,
              data.data() + size_t{i} * kPageSize);
  }
  uint32_t folios = 0;
  while (area.store_folio(SlotIndex{folios * 512}, 9, data.data()) == Errc::ok)
    ++folios;
  ASSERT_GE(folios, 1u);
  ASSERT_LT(folios, 8u);
  fixture.engine->quiesce();
  EXPECT_EQ(fixture.engine->stats().content.pages_stored, uint64_t{folios} * 512);
  fixture.engine->verify();
  std::array<ByteExtent, 2> extents;
  EXPECT_EQ(area.status(uint64_t{folios} * 512 * kPageSize, 512 * kPageSize, extents), 1u);
  EXPECT_EQ(extents[0].kind, ExtentKind::hole);
  // One goes, the next one fits.
  ASSERT_EQ(area.free_run(SlotIndex{0}, 512).code, Errc::ok);
  EXPECT_EQ(area.store_folio(SlotIndex{folios * 512}, 9, data.data()), Errc::ok);
  fixture.engine->quiesce();
  fixture.engine->verify();
}

// Bytes of a page, at the limit: refused or done, and the page is whole.
TEST(SwapArea, BytesAtTheLimit) {
  constexpr uint64_t kSize = 1000 * uint64_t{kPageSize};
  Fixture fixture(kSize, 3u << 19);
  SwapArea area = fixture.open();
  Disk disk(kSize);
  Random random(seed());
  // Full of pages that do not compress: 2 MB of them do not fit, whatever the seed.
  std::vector<std::byte> noise(kSize / 2);
  std::generate(noise.begin(), noise.end(),
                [&] { return static_cast<std::byte>(random.below(256)); });
  const ByteResult filled = area.write(0, noise);
  ASSERT_EQ(filled.code, Errc::no_space);
  ASSERT_GT(filled.bytes_done, 1u << 20);
  disk.write(0, std::span(noise).first(filled.bytes_done));
  for (uint32_t i = 0; i < scaled(4000); ++i) {
    const Range range = random_range(random, kSize / 2);
    if (random.one_in(6)) {
      to_the_end(range, [&](Range rest) { return area.trim(rest.offset, rest.length); });
      disk.trim(range.offset, range.length);
      continue;
    }
    const auto data = random_bytes(random, std::min<uint64_t>(range.length, 40 * kPageSize));
    const ByteResult written = area.write(range.offset, data);
    ASSERT_TRUE(written.code == Errc::ok || written.code == Errc::no_space);
    disk.write(range.offset, std::span(data).first(written.bytes_done));
    if (i % 50 == 0) expect_same(area, disk, {0, kSize});
    ASSERT_FALSE(HasFailure());
  }
  expect_same(area, disk, {0, kSize});
  fixture.engine->quiesce();
  fixture.engine->verify();
}

}  // namespace
}  // namespace tuck::vm::test

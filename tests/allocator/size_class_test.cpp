// The size-class table over every size that an object can have.
#include "allocator/size_class.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tuck::allocator {
namespace {

TEST(SizeClass, EverySizeHasTheSmallestClassThatHoldsIt) {
  const SizeClasses classes;
  ASSERT_GT(classes.count(), 0u);
  ASSERT_LE(classes.count(), kSizeClassesMax);
  for (uint32_t bytes = 1; bytes <= kObjectBytesMax; ++bytes) {
    const uint32_t index = classes.index_of(bytes);
    ASSERT_LT(index, classes.count()) << bytes;
    ASSERT_GE(classes[index].object_bytes, bytes);
    if (index > 0) {
      ASSERT_LT(classes[index - 1].object_bytes, bytes);
    }
  }
}

TEST(SizeClass, ClassesRiseAndEachIsUsed) {
  const SizeClasses classes;
  for (uint32_t i = 0; i < classes.count(); ++i) {
    const SizeClass& c = classes[i];
    // An object as large as its class is of that class.
    if (c.object_bytes <= kObjectBytesMax) {
      EXPECT_EQ(classes.index_of(c.object_bytes), i);
    }
    if (i > 0) {
      EXPECT_GT(c.object_bytes, classes[i - 1].object_bytes);
      // zsmalloc's reason to merge: two classes that cut their zspages alike would only divide
      // their free room.
      EXPECT_FALSE(c.frames == classes[i - 1].frames && c.objects == classes[i - 1].objects)
          << c.object_bytes;
    }
  }
}

TEST(SizeClass, ZspagesKeepToTheirBounds) {
  const SizeClasses classes;
  for (uint32_t i = 0; i < classes.count(); ++i) {
    const SizeClass& c = classes[i];
    ASSERT_EQ(c.object_bytes % 8, 0u);
    ASSERT_GE(c.object_bytes, kObjectBytesMin);
    ASSERT_GE(c.frames, 1u);
    ASSERT_LE(c.frames, kZspageFramesMax);
    ASSERT_GE(c.objects, 1u);
    ASSERT_LE(c.objects, kZspageObjectsMax);
    ASSERT_LE(c.objects * c.object_bytes, c.frames * kFrameSize);
    ASSERT_EQ(c.tail_bytes(), c.zspage_bytes() - c.objects * c.object_bytes);
    // The class took its whole share: not eight bytes an object are left.
    ASSERT_LT(c.tail_bytes(), 8u * c.objects);
    // The tail that could not be shared out: below one in 128.
    ASSERT_LE(c.tail_bytes() * 128, c.zspage_bytes()) << c.object_bytes;
  }
}

TEST(SizeClass, EveryOffsetBelongsToOneObject) {
  const SizeClasses classes;
  for (uint32_t i = 0; i < classes.count(); ++i) {
    const SizeClass& c = classes[i];
    for (uint32_t offset = 0; offset < c.objects * c.object_bytes; offset += 8) {
      ASSERT_EQ(c.object_index(offset), offset / c.object_bytes)
          << "offset " << offset << " in class " << c.object_bytes;
    }
  }
}

// What an object costs over its own bytes, tail included: at most a step of the table (16 bytes up
// to 1 KiB, 32 up to a page, a sixteenth beyond) and 1/64.
TEST(SizeClass, WasteIsBounded) {
  const SizeClasses classes;
  double sum = 0;
  for (uint32_t bytes = kObjectBytesMin; bytes <= kObjectBytesMax; ++bytes) {
    const SizeClass& c = classes[classes.index_of(bytes)];
    const double cost = static_cast<double>(c.zspage_bytes()) / c.objects;
    const double step = bytes <= 1024 ? 16 : bytes <= kPageSize + 8 ? 32 : bytes / 16.0;
    EXPECT_LE(cost - bytes, step + bytes / 64.0 + 8) << bytes;
    if (bytes <= kPageSize + 8) sum += cost / bytes - 1;
  }
  // Over all sizes up to a raw page, each as often as the next.
  EXPECT_LE(sum / (kPageSize + 8), 0.02);
}

TEST(SizeClass, ARawPageCostsHardlyMoreThanItself) {
  const SizeClasses classes;
  const SizeClass& c = classes[classes.index_of(kPageSize + sizeof(ObjectHeader))];
  const double cost = static_cast<double>(c.zspage_bytes()) / c.objects;
  EXPECT_LE(cost, kPageSize * 1.02);
}

TEST(ObjectHeader, KeepsOwnerAndGeneration) {
  for (const uint32_t slot : {0u, 1u, 0x8000'0000u, 0xffff'ffffu}) {
    for (const uint16_t area : std::initializer_list<uint16_t>{0, 1, 2048, 4095}) {
      for (const uint32_t generation : {0u, 1u, 0xf'ffffu}) {
        const Owner owner{AreaId{area}, SlotIndex{slot}};
        const ObjectHeader header(owner, generation);
        EXPECT_EQ(header.owner(), owner);
        EXPECT_EQ(header.generation(), generation);
        // A generation that has run over does not spill into the area.
        EXPECT_EQ(ObjectHeader(owner, generation + (1u << 20)).owner(), owner);
      }
    }
  }
}

}  // namespace
}  // namespace tuck::allocator

#include "libgpuslice/base/memory_reserve.h"

#include <gtest/gtest.h>

#include <cstring>

namespace gpuslice {
namespace {

using Reserve = MemoryReserve<1024>;

TEST(MemoryReserve, HandsOutMemoryUntilThereIsNone) {
  static Reserve reserve;
  EXPECT_FALSE(reserve.touched());
  void* first = reserve.take(100, 16);
  void* second = reserve.take(500, 16);
  ASSERT_TRUE(first && second);
  std::memset(first, 1, 100);
  std::memset(second, 2, 500);
  EXPECT_EQ(static_cast<char*>(first)[99], 1);
  EXPECT_TRUE(reserve.touched());
  EXPECT_EQ(reserve.take(500, 16), nullptr);
  EXPECT_EQ(reserve.take(SIZE_MAX, 16), nullptr);
  EXPECT_NE(reserve.take(400, 16), nullptr) << "what is left is still given";
}

TEST(MemoryReserve, Aligns) {
  static Reserve reserve;
  ASSERT_NE(reserve.take(1, 1), nullptr);
  for (const std::size_t alignment : {1, 2, 8, 16, 64}) {
    void* memory = reserve.take(3, alignment);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0u);
  }
  EXPECT_EQ(reserve.take(1, 4096), nullptr);
}

TEST(MemoryReserve, KnowsItsOwn) {
  static Reserve reserve;
  char other = 0;
  EXPECT_TRUE(reserve.has(reserve.take(1024, 1)));
  EXPECT_FALSE(reserve.has(&other));
  EXPECT_FALSE(reserve.has(nullptr));
  EXPECT_FALSE(reserve.has(reinterpret_cast<std::byte*>(&reserve) + 1024));
}

}  // namespace
}  // namespace gpuslice

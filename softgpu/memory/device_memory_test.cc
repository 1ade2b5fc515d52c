#include "softgpu/memory/device_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuctl::softgpu {
namespace {

constexpr std::size_t kLimit = 1 << 20;

TEST(Memory, FreedPiecesGrowTogether) {
  Memory memory({kLimit});
  std::vector<std::uint64_t> pieces;
  for (int i = 0; i < 4; ++i) pieces.push_back(memory.allocate(kLimit / 4, MemoryKind::kDevice, 0, nullptr));
  EXPECT_EQ(memory.free_bytes(0), 0U);
  EXPECT_EQ(memory.allocate(1, MemoryKind::kDevice, 0, nullptr), 0U);
  for (const int i : {0, 2, 1, 3}) EXPECT_TRUE(memory.release(pieces[i], MemoryKind::kDevice, MemoryKind::kDevice));
  EXPECT_NE(memory.allocate(kLimit, MemoryKind::kDevice, 0, nullptr), 0U);
}

TEST(Memory, KnowsItsRanges) {
  Memory memory({kLimit});
  const std::uint64_t a = memory.allocate(100, MemoryKind::kDevice, 0, nullptr);
  EXPECT_TRUE(memory.covers(a + 50, 50));
  EXPECT_FALSE(memory.covers(a + 50, 51));
  EXPECT_FALSE(memory.lookup(a + 100).has_value());  // inside the reserved bytes, outside the requested ones
  EXPECT_EQ(memory.find(a + 99, 0, 0).begin, a);
  EXPECT_EQ(memory.find(a + 99, 0, 0).end, a + 100);
  EXPECT_EQ(memory.find(a + 100, 0, 0).begin, memory.find(a + 100, 0, 0).end);
}

TEST(Memory, RefusesOverlap) {
  Memory memory({kLimit});
  static char page[4096];
  Allocation registered;
  registered.address = reinterpret_cast<std::uint64_t>(page) + 1000;
  registered.bytes = 1000;
  registered.kind = MemoryKind::kRegistered;
  EXPECT_TRUE(memory.add(registered));
  registered.address -= 500;
  EXPECT_FALSE(memory.add(registered));  // its end overlaps
  registered.address += 1000;
  EXPECT_FALSE(memory.add(registered));  // its start overlaps
  registered.address += 500;
  EXPECT_TRUE(memory.add(registered));  // adjacent
}

TEST(Memory, ReleasesByKindAndByOwner) {
  Memory memory({kLimit});
  const int owner = 0;
  const std::uint64_t host = memory.allocate(10, MemoryKind::kHost, 0, &owner);
  const std::uint64_t device = memory.allocate(10, MemoryKind::kDevice, 0, &owner);
  EXPECT_FALSE(memory.release(host, MemoryKind::kDevice, MemoryKind::kManaged));
  EXPECT_FALSE(memory.release(device + 1, MemoryKind::kDevice, MemoryKind::kDevice));
  memory.release_owner(&owner);
  EXPECT_FALSE(memory.lookup(host).has_value());
  EXPECT_EQ(memory.free_bytes(0), kLimit);
}

TEST(Memory, EachDeviceHasItsOwn) {
  Memory memory({kLimit, 2 * kLimit});
  EXPECT_EQ(memory.limit(0), kLimit);
  EXPECT_EQ(memory.limit(1), 2 * kLimit);
  const std::uint64_t first = memory.allocate(kLimit, MemoryKind::kDevice, 0, nullptr, 0);
  const std::uint64_t second = memory.allocate(kLimit, MemoryKind::kDevice, 0, nullptr, 1);
  EXPECT_EQ(memory.allocate(1, MemoryKind::kManaged, 0, nullptr, 0), 0U);
  EXPECT_EQ(memory.free_bytes(1), kLimit);
  EXPECT_FALSE(memory.take(1, 0));
  EXPECT_TRUE(memory.take(kLimit, 1));
  EXPECT_TRUE(memory.release(first, MemoryKind::kDevice, MemoryKind::kDevice));
  EXPECT_EQ(memory.free_bytes(0), kLimit);
  EXPECT_EQ(memory.free_bytes(1), 0U);
  EXPECT_TRUE(memory.release(second, MemoryKind::kDevice, MemoryKind::kDevice));
}

TEST(Memory, IsOpenToPeersOnly) {
  Memory memory({kLimit, kLimit});
  const auto open = [](Memory::Range range) { return range.end != range.begin; };
  const std::uint64_t device = memory.allocate(8, MemoryKind::kDevice, 0, nullptr, 1);
  const std::uint64_t managed = memory.allocate(8, MemoryKind::kManaged, 0, nullptr, 1);
  EXPECT_TRUE(open(memory.find(device, 1, 0)));
  EXPECT_FALSE(open(memory.find(device, 0, 0)));
  EXPECT_TRUE(open(memory.find(device, 0, 0b10)));
  EXPECT_TRUE(open(memory.find(managed, 0, 0)));
  static char page[4096];
  Allocation mapping;
  mapping.address = reinterpret_cast<std::uint64_t>(page);
  mapping.bytes = sizeof page;
  mapping.kind = MemoryKind::kMapped;
  ASSERT_TRUE(memory.add(mapping));
  EXPECT_FALSE(memory.covers(mapping.address, 1));
  memory.set_access(mapping.address, 1, 3);
  EXPECT_TRUE(memory.covers(mapping.address, 1));
  EXPECT_FALSE(open(memory.find(mapping.address, 0, 0b10)));
  EXPECT_TRUE(open(memory.find(mapping.address, 1, 0)));
  memory.set_access(mapping.address, 0, 1);
  memory.set_access(mapping.address, 1, 0);
  EXPECT_TRUE(open(memory.find(mapping.address, 0, 0)));
  EXPECT_FALSE(open(memory.find(mapping.address, 1, 0)));
}

}  // namespace
}  // namespace gpuctl::softgpu

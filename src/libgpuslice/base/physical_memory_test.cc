#include "libgpuslice/base/physical_memory.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr CUdeviceptr kAddress = 0x700000000000;
constexpr std::size_t kSize = 2 << 20;

class Physical : public testing::Test {
 protected:
  std::uint64_t release(CUmemGenericAllocationHandle handle) { return end(memory.release(handle)); }
  std::uint64_t unmap(CUdeviceptr address, std::size_t size = kSize) { return end(memory.unmap(address, size)); }

  /// Bytes that no longer exist. frees() announced that before.
  std::uint64_t end(PhysicalMemory::Leaving&& leaving) {
    const bool frees = memory.frees(leaving);
    std::uint64_t bytes = 0;
    for (const PhysicalMemory::Made& made : memory.ended(std::move(leaving))) bytes += made.bytes;
    EXPECT_EQ(frees, bytes != 0);
    return bytes;
  }

  PhysicalMemory memory;
};

TEST_F(Physical, ThereUntilReleasedWhenNeverMapped) {
  memory.made(1, {0, kSize});
  EXPECT_EQ(release(1), kSize);
  EXPECT_EQ(release(1), 0u);
}

TEST_F(Physical, ThereUntilTheLastMappingIsGone) {
  memory.made(1, {0, kSize});
  memory.mapped(kAddress, kSize, 1);
  memory.mapped(kAddress + 8 * kSize, kSize, 1);
  EXPECT_EQ(release(1), 0u);
  memory.made(1, {0, 5});  // the handle now names other memory
  EXPECT_EQ(unmap(kAddress), 0u);
  EXPECT_EQ(unmap(kAddress + 8 * kSize), kSize);
  EXPECT_EQ(release(1), 5u);
}

TEST_F(Physical, ThereUntilReleasedWhenUnmappedBefore) {
  memory.made(1, {0, kSize});
  memory.mapped(kAddress, kSize, 1);
  EXPECT_EQ(unmap(kAddress), 0u);
  EXPECT_EQ(release(1), kSize);
}

TEST_F(Physical, ARangeOfMappingsGoesAtOnce) {
  memory.made(1, {0, kSize});
  memory.made(2, {0, 7});
  memory.mapped(kAddress, kSize, 1);
  memory.mapped(kAddress + kSize, kSize, 1);
  memory.mapped(kAddress + 2 * kSize, kSize, 2);
  memory.mapped(kAddress + 3 * kSize, kSize, 2);
  release(1);
  release(2);
  EXPECT_EQ(unmap(kAddress, 3 * kSize), kSize);  // both mappings of one memory, one mapping of another
  EXPECT_EQ(unmap(kAddress + 3 * kSize), 7u);
}

TEST_F(Physical, AHandleGivenOnceMoreKeepsIt) {
  memory.made(1, {0, kSize});
  memory.mapped(kAddress, kSize, 1);
  memory.retained(1, kAddress + 100);
  EXPECT_EQ(release(1), 0u);
  EXPECT_EQ(unmap(kAddress), 0u);
  EXPECT_EQ(release(1), kSize);
  memory.retained(3, kAddress);  // of unknown memory
  memory.retained(3, 0);
  EXPECT_EQ(release(3), 0u);
}

TEST_F(Physical, WhatTheDriverRefusedStays) {
  memory.made(1, {0, kSize});
  memory.mapped(kAddress, kSize, 1);
  memory.put_back(memory.release(1));
  memory.put_back(memory.unmap(kAddress, kSize));
  memory.put_back(memory.release(9));
  EXPECT_EQ(unmap(kAddress), 0u);
  EXPECT_EQ(release(1), kSize);
}

}  // namespace
}  // namespace gpuslice

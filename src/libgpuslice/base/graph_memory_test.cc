#include "libgpuslice/base/graph_memory.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr MemoryNode allocate(CUdeviceptr address, std::uint64_t bytes) {
  return {.allocates = true, .address = address, .bytes = bytes};
}
constexpr MemoryNode release(CUdeviceptr address) {
  return {.address = address};
}

TEST(LeastMemory, IsWhatIsAllocatedAtATime) {
  EXPECT_EQ(least_memory({}), 0u);
  const MemoryNode kept[] = {allocate(1, 100), allocate(2, 50)};
  EXPECT_EQ(least_memory(kept), 150u);
  const MemoryNode in_turn[] = {allocate(1, 100), release(1), allocate(2, 120), release(2), allocate(3, 90)};
  EXPECT_EQ(least_memory(in_turn), 120u);
}

TEST(LeastMemory, WhatOthersAllocatedOrTheOrderHidesIsNotGuessed) {
  const MemoryNode of_others[] = {release(7), allocate(1, 100), release(1)};
  EXPECT_EQ(least_memory(of_others), 100u);
  const MemoryNode backwards[] = {release(1), allocate(1, 100), release(2), allocate(2, 60)};
  EXPECT_EQ(least_memory(backwards), 100u);
}

TEST(GraphMemory, ForgetsGraphsThatAreDestroyed) {
  GraphMemory memory;
  const auto graph = reinterpret_cast<CUgraphExec>(8);
  EXPECT_EQ(memory.find(graph).bytes, 0u);
  memory.add(graph, {.device = 1, .bytes = 100});
  EXPECT_EQ(memory.find(graph).device, 1);
  EXPECT_EQ(memory.find(graph).bytes, 100u);
  memory.remove(graph);
  EXPECT_EQ(memory.find(graph).bytes, 0u);
}

}  // namespace
}  // namespace gpuslice

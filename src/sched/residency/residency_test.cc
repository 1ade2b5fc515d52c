#include <gtest/gtest.h>

#include "sched/residency/room.h"

namespace gpuctl::sched::residency_test {
namespace {

SmLimits limits(std::string_view capability) {
  return sm_limits(capability).value();
}

/// SiM Table 3, after its transformation.
constexpr BlockShape kBinomialOptions{128, 28, 524}, kFdtd3d{512, 58, 3848}, kLavaMd{128, 64, 7208},
    kMd5Hash{384, 30, 8}, kNbody{256, 49, 8208}, kParticleFilter{128, 16, 8}, kTpacf{256, 49, 13320};

TEST(Residency, TheK40IsThatOfTheSimPaper) {
  const SmLimits sm = limits("3.5");
  EXPECT_EQ(sm.warps, 64u);
  EXPECT_EQ(sm.warps * 32, 2048u);
  EXPECT_EQ(sm.registers, 65536u);
  EXPECT_EQ(sm.shared, 48u * 1024);
  EXPECT_EQ(sm.blocks, 16u);
}

TEST(Residency, WhatEachOfSimsKernelsRunsOutOf) {
  const SmLimits sm = limits("3.5");
  EXPECT_EQ(most_blocks(sm, kBinomialOptions), 16u);  // blocks, warps and registers at once
  EXPECT_EQ(most_blocks(sm, kFdtd3d), 2u);            // registers: 16 warps of 2048 each
  EXPECT_EQ(most_blocks(sm, kLavaMd), 6u);            // shared memory
  EXPECT_EQ(most_blocks(sm, kMd5Hash), 5u);           // warps
  EXPECT_EQ(most_blocks(sm, kNbody), 4u);             // registers
  EXPECT_EQ(most_blocks(sm, kParticleFilter), 16u);   // blocks
  EXPECT_EQ(most_blocks(sm, kTpacf), 3u);             // shared memory
}

// SiM 2.2: MD5Hash "needs more than 70% of the registers on the device, but uses no shared memory"; lavaMD "needs more
// than 90% of the shared memory".
TEST(Residency, TheShareOfEachResourceIsWhatTheSimPaperSays) {
  const SmLimits sm = limits("3.5");
  const SmUse md = use_of(sm, kMd5Hash, 5), lm = use_of(sm, kLavaMd, 6);
  EXPECT_GT(static_cast<double>(md.registers) * kSmPartitions / sm.registers, 0.7);
  EXPECT_LT(static_cast<double>(md.shared) / sm.shared, 0.03);
  EXPECT_GT(static_cast<double>(lm.shared) / sm.shared, 0.9);
  EXPECT_LE(lm.shared, sm.shared);
}

TEST(Residency, KernelsThatNeedDifferentThingsFitTogether) {
  const SmLimits sm = limits("3.5");
  // Four sixths of lavaMD leave room for one of three tpacf. Both run out of shared memory.
  EXPECT_EQ(most_blocks(sm, kTpacf, use_of(sm, kLavaMd, 4)), 1u);
  // Beside four of its six, particleFilter, which needs none, has 12 of its 16.
  EXPECT_EQ(most_blocks(sm, kParticleFilter, use_of(sm, kLavaMd, 4)), 12u);
  EXPECT_EQ(most_blocks(sm, kMd5Hash, use_of(sm, kLavaMd, 6)), 1u);  // registers
  EXPECT_EQ(most_blocks(sm, kMd5Hash, use_of(sm, kFdtd3d, 2)), 0u);  // registers
  EXPECT_EQ(most_blocks(sm, kFdtd3d, use_of(sm, kMd5Hash, 2)), 1u);
  // Those that do not fit themselves leave nothing.
  EXPECT_EQ(most_blocks(sm, kParticleFilter, use_of(sm, kFdtd3d, 3)), 0u);
}

// What cudaOccupancyMaxActiveBlocksPerMultiprocessor says on an H100 or H200 for such launches.
TEST(Residency, OneKernelHasTheOccupancyThatCudaSays) {
  const SmLimits sm = limits("9.0");
  EXPECT_EQ(most_blocks(sm, {256, 32, 0}), 8u);
  EXPECT_EQ(most_blocks(sm, {32, 16, 0}), 32u);          // blocks
  EXPECT_EQ(most_blocks(sm, {1024, 64, 0}), 1u);         // registers, all of them
  EXPECT_EQ(most_blocks(sm, {256, 65, 0}), 3u);          // 65 are 72: 7 warps in each partition, and 28 / 8
  EXPECT_EQ(most_blocks(sm, {96, 168, 0}), 4u);          // 3 warps in each partition, so 12 of 3
  EXPECT_EQ(most_blocks(sm, {128, 32, 48 * 1024}), 4u);  // 49 KiB with what is reserved for each block
  EXPECT_EQ(most_blocks(sm, {128, 32, 227 * 1024}), 1u);
  EXPECT_EQ(most_blocks(sm, {128, 32, 228 * 1024}), 0u);
  EXPECT_EQ(most_blocks(sm, {33, 32, 0}), 32u);     // two warps each
  EXPECT_EQ(most_blocks(sm, {64, 32, 0, 16}), 4u);  // barriers
  EXPECT_EQ(most_blocks(limits("8.6"), {256, 32, 0}), 6u);
  EXPECT_EQ(most_blocks(limits("7.5"), {64, 32, 0}), 16u);
}

TEST(Residency, WarpsOfSeveralKernelsAreSpreadOverThePartitions) {
  const SmLimits sm = limits("9.0");
  // One warp with 255 registers in one partition is half of what the partition has; three partitions are empty. Two
  // kernels of one warp each count as if they met in one partition.
  const BlockShape one{32, 255};
  EXPECT_EQ(use_of(sm, one, 1).registers, 8192u);
  EXPECT_EQ(use_of(sm, one, 4).registers, 8192u);
  EXPECT_EQ(use_of(sm, one, 5).registers, 16384u);
  SmUse both = use_of(sm, one, 4);
  both += use_of(sm, one, 4);
  EXPECT_TRUE(fits(sm, both));
  both += use_of(sm, {32, 16}, 1);
  EXPECT_FALSE(fits(sm, both));
}

TEST(Residency, UnknownCapabilitiesAreNotGuessed) {
  EXPECT_FALSE(sm_limits("9.9"));
  EXPECT_FALSE(sm_limits(""));
  EXPECT_EQ(known_compute_capabilities().substr(0, 8), "3.5, 5.2");
}

TEST(Residency, ARoomOfSmsCountsThem) {
  Room room(CapSM{8});
  EXPECT_TRUE(room.change({}, CapSM{0}, CapSM{6}));
  EXPECT_FALSE(room.change({}, CapSM{0}, CapSM{3}));
  EXPECT_TRUE(room.change({}, CapSM{6}, CapSM{5}));
  EXPECT_TRUE(room.change({}, CapSM{0}, CapSM{3}));
  EXPECT_TRUE(room.change({}, CapSM{5}, CapSM{1}));
  EXPECT_EQ(room.grow({}, CapSM{3}, CapSM{9}), CapSM{7});
  EXPECT_TRUE(room.full());
}

TEST(Residency, ARoomOfWorkersCountsWhatTheyNeed) {
  Room room(limits("3.5"));
  const BlockShape &lava = kLavaMd, &tpacf = kTpacf;
  EXPECT_TRUE(room.change(lava, CapSM{0}, CapSM{6}));
  EXPECT_TRUE(room.change(kParticleFilter, CapSM{0}, CapSM{8}));
  EXPECT_FALSE(room.change(tpacf, CapSM{0}, CapSM{1}));
  EXPECT_TRUE(room.change(lava, CapSM{6}, CapSM{4}));
  EXPECT_TRUE(room.change(tpacf, CapSM{0}, CapSM{1}));
  EXPECT_TRUE(room.change(tpacf, CapSM{1}, CapSM{0}));
  EXPECT_EQ(room.grow(lava, CapSM{4}, CapSM{9}), CapSM{6});
}

}  // namespace
}  // namespace gpuctl::sched::residency_test

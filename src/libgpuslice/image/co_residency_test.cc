#include "libgpuslice/image/co_residency.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuslice {
namespace {

CUlaunchAttribute cooperative(int on = 1) {
  CUlaunchAttribute made{};
  made.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  made.value.cooperative = on;
  return made;
}

CUlaunchAttribute clusters(unsigned x, unsigned y = 1, unsigned z = 1) {
  CUlaunchAttribute made{};
  made.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  made.value.clusterDim.x = x;
  made.value.clusterDim.y = y;
  made.value.clusterDim.z = z;
  return made;
}

CoResidency of(std::vector<CUlaunchAttribute> attributes, std::uint64_t blocks = 264) {
  return co_residency_of(attributes.data(), static_cast<unsigned>(attributes.size()), blocks);
}

TEST(CoResidency, OrdinaryBlocksGoByThemselves) {
  CUlaunchAttribute priority{};
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  EXPECT_FALSE(co_residency_of(nullptr, 0, 264));
  EXPECT_FALSE(of({priority, cooperative(0), clusters(1)}));
  EXPECT_EQ(sms_for(of({}), 0), 1u);
}

TEST(CoResidency, AllBlocksOfACooperativeGrid) {
  const CoResidency all = of({cooperative()});
  ASSERT_TRUE(all);
  EXPECT_STREQ(all.how, "cooperatively");
  EXPECT_EQ(all.blocks, 264u);
  EXPECT_EQ(sms_for(all, 2), 132u);
  EXPECT_EQ(sms_for(all, 8), 33u);
  EXPECT_EQ(sms_for(of({cooperative()}, 1), 8), 1u);
  EXPECT_EQ(sms_for(of({cooperative()}, ~0ull), 1), kAllSms);
}

TEST(CoResidency, ClustersAreKnownOfCooperativeGridsToo) {
  EXPECT_EQ(of({}).cluster, 1u);
  EXPECT_EQ(of({cooperative()}).cluster, 1u);
  EXPECT_EQ(of({clusters(0, 0, 0)}).cluster, 1u);
  EXPECT_EQ(of({cooperative(), clusters(2, 2)}).cluster, 4u);
}

TEST(CoResidency, TheBlocksOfACluster) {
  const CoResidency cluster = of({clusters(2, 2)});
  ASSERT_TRUE(cluster);
  EXPECT_STREQ(cluster.how, "in clusters");
  EXPECT_EQ(cluster.blocks, 4u);
  EXPECT_EQ(sms_for(cluster, 1), 4u);
  EXPECT_EQ(sms_for(cluster, 8), 1u);
  EXPECT_EQ(sms_for(of({clusters(8)}), 1), 8u);
  EXPECT_EQ(sms_for(of({clusters(16)}), 8), kAllSms);  // no part of the GPU is sure to have SMs so near each other
}

TEST(CoResidency, ACooperativeGridOfClustersNeedsAll) {
  EXPECT_EQ(of({cooperative(), clusters(2)}).blocks, 264u);
  EXPECT_EQ(of({clusters(2), cooperative()}).blocks, 264u);
}

TEST(CoResidency, WhereItDoesNotFitAnSmAtAllTheDriverIsAsked) {
  EXPECT_EQ(sms_for(of({cooperative()}), 0), kAllSms);
}

TEST(TogetherTest, KernelsWhoseBlocksWaitAreKnownByTheirNames) {
  EXPECT_TRUE(blocks_may_wait("_ZN8cusparse17csrilu02_kernel_1ILi128EEEv"));
  EXPECT_TRUE(blocks_may_wait("ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
  EXPECT_FALSE(blocks_may_wait("_Z9vectorAddPKfS0_Pfi"));
  EXPECT_FALSE(blocks_may_wait(""));
}

}  // namespace
}  // namespace gpuslice

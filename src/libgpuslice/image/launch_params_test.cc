#include "libgpuslice/image/launch_params.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ptx/persistent_abi.h"

namespace gpuslice {
namespace {

class Pack : public testing::Test {
 protected:
  Pack() {
    kernel_.params = {{0, 4}, {8, 8}};
    kernel_.args_offset = 16;
  }

  template <class Value>
  Value at(std::size_t offset) const {
    Value value{};
    std::memcpy(&value, block_.data() + offset, sizeof value);
    return value;
  }

  KernelInfo kernel_;
  std::vector<std::byte> block_;
  std::uint32_t number_ = 7;
  std::uint64_t pointer_ = 0x1234567890;
};

TEST_F(Pack, ValuesByPointer) {
  void* params[] = {&number_, &pointer_};
  ASSERT_TRUE(pack(kernel_, params, nullptr, block_));
  EXPECT_EQ(block_.size(), 16 + sizeof(gpuctl::ptx::LaunchArgs));
  EXPECT_EQ(at<std::uint32_t>(0), number_);
  EXPECT_EQ(at<std::uint64_t>(8), pointer_);
}

TEST_F(Pack, ValuesInABuffer) {
  std::byte buffer[16]{};
  std::memcpy(buffer, &number_, 4);
  std::memcpy(buffer + 8, &pointer_, 8);
  std::size_t size = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  ASSERT_TRUE(pack(kernel_, nullptr, extra, block_));
  EXPECT_EQ(at<std::uint32_t>(0), number_);
  EXPECT_EQ(at<std::uint64_t>(8), pointer_);
  size = 15;
  EXPECT_FALSE(pack(kernel_, nullptr, extra, block_));
}

TEST_F(Pack, MissingValues) {
  void* params[] = {&number_, nullptr};
  EXPECT_FALSE(pack(kernel_, params, nullptr, block_));
  EXPECT_FALSE(pack(kernel_, nullptr, nullptr, block_));
  kernel_.params.clear();
  EXPECT_TRUE(pack(kernel_, nullptr, nullptr, block_));
}

CUlaunchAttribute attribute(CUlaunchAttributeID id) {
  CUlaunchAttribute made{};
  made.id = id;
  return made;
}

TEST(TakeAttributes, KeepsWhatThePersistentFormShouldHave) {
  const CUlaunchAttribute given[] = {attribute(CU_LAUNCH_ATTRIBUTE_IGNORE),
                                     attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN),
                                     attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)};
  std::vector<CUlaunchAttribute> keep;
  ASSERT_TRUE(take_attributes(given, 3, keep));
  ASSERT_EQ(keep.size(), 1u);
  EXPECT_EQ(keep[0].id, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
}

TEST(TakeAttributes, RefusesCooperativeAndUnknownOnes) {
  std::vector<CUlaunchAttribute> keep;
  CUlaunchAttribute cooperative = attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  EXPECT_TRUE(take_attributes(&cooperative, 1, keep));
  cooperative.value.cooperative = 1;
  EXPECT_FALSE(take_attributes(&cooperative, 1, keep));
  CUlaunchAttribute cluster = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  cluster.value.clusterDim = {1, 1, 1};
  EXPECT_TRUE(take_attributes(&cluster, 1, keep));
  EXPECT_TRUE(keep.empty());
  cluster.value.clusterDim = {1, 2, 1};
  EXPECT_FALSE(take_attributes(&cluster, 1, keep));
  const CUlaunchAttribute unknown = attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
  EXPECT_FALSE(take_attributes(&unknown, 1, keep));
}

TEST(FitsWholeWarps, OnlyWhereTheKernelNeedsThem) {
  KernelInfo kernel;
  EXPECT_TRUE(fits_whole_warps(kernel, {1, 1, 1}, {33, 1, 1}));
  kernel.needs_whole_warps = true;
  EXPECT_FALSE(fits_whole_warps(kernel, {1, 1, 1}, {33, 1, 1}));
  EXPECT_TRUE(fits_whole_warps(kernel, {1, 1, 1}, {64, 1, 1}));
  EXPECT_FALSE(fits_whole_warps(kernel, {0x4000000, 1, 1}, {64, 1, 1}));
}

}  // namespace
}  // namespace gpuslice

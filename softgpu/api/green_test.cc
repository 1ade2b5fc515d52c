// Tests of green contexts: how SMs are divided, and that kernels launched into their streams stay on their SMs.
#include <chrono>
#include <thread>
#include <vector>

#include "softgpu/api/fixture.h"
#include "softgpu/table/table.h"

namespace gpuctl::softgpu {
namespace {

using Blocks = std::vector<std::uint32_t>;  // on each SM

/// Uses the primary context, from which green contexts are made.
class GreenApi : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    ASSERT_CU(cuDevicePrimaryCtxRetain(&primary_, 0));
    ASSERT_CU(cuCtxSetCurrent(primary_));
    ASSERT_CU(cuModuleLoadData(&module_, kTestPtx));
    ASSERT_CU(cuDeviceGetDevResource(0, &all_, CU_DEV_RESOURCE_TYPE_SM));
  }

  void TearDown() override {
    for (CUgreenCtx green : greens_) EXPECT_CU(cuGreenCtxDestroy(green));
    EXPECT_CU(cuDevicePrimaryCtxRelease(0));
    EXPECT_CU(cuCtxSetCurrent(context_));
    ApiTest::TearDown();
  }

  /// Groups of at least so many SMs.
  std::vector<CUdevResource> split(unsigned least, CUdevResource* rest = nullptr, unsigned most = 64,
                                   unsigned flags = 0) {
    std::vector<CUdevResource> groups(most);
    EXPECT_CU(cuDevSmResourceSplitByCount(groups.data(), &most, &all_, rest, flags, least));
    groups.resize(most);
    return groups;
  }

  CUgreenCtx make(CUdevResource resource) { return make(std::vector{resource}); }
  CUgreenCtx make(std::vector<CUdevResource> resources) {
    CUdevResourceDesc description = nullptr;
    EXPECT_CU(cuDevResourceGenerateDesc(&description, resources.data(), static_cast<unsigned>(resources.size())));
    CUgreenCtx green = nullptr;
    EXPECT_CU(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    greens_.push_back(green);
    return green;
  }

  static CUstream stream(CUgreenCtx green, int priority = 0) {
    CUstream result = nullptr;
    EXPECT_CU(cuGreenCtxStreamCreate(&result, green, CU_STREAM_NON_BLOCKING, priority));
    return result;
  }

  /// Waits until the newest kernel in the table has its blocks on these SMs.
  static void expect_newest_on(const Blocks& expected) {
    const auto reader = TableReader::open(std::getenv("SOFTGPU_TABLE"));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    Blocks seen;
    while (reader.has_value() && seen != expected && std::chrono::steady_clock::now() < end) {
      const Snapshot snapshot = (*reader)->snapshot();
      if (!snapshot.kernels.empty()) seen = snapshot.kernels.back().resident;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(seen, expected);
  }

  CUcontext primary_ = nullptr;
  CUdevResource all_{};
  std::vector<CUgreenCtx> greens_;
};

TEST_F(GreenApi, SmsAreDividedInPairs) {
  EXPECT_EQ(all_.sm.smCount, 4U);
  CUdevResource of_context{}, rest{};
  EXPECT_CU(cuCtxGetDevResource(primary_, &of_context, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(of_context.sm.smCount, 4U);
  for (const unsigned least : {0U, 1U, 2U}) {
    const auto groups = split(least, &rest);
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(groups[0].sm.smCount, 2U);
    EXPECT_EQ(rest.type, CU_DEV_RESOURCE_TYPE_INVALID);
  }
  EXPECT_EQ(split(3, &rest).size(), 1U);
  EXPECT_EQ(split(1, &rest, 1).size(), 1U);
  EXPECT_EQ(rest.sm.smCount, 2U);
  unsigned possible = 0;
  EXPECT_CU(cuDevSmResourceSplitByCount(nullptr, &possible, &all_, nullptr, 0, 2));
  EXPECT_EQ(possible, 2U);
  EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &possible, &all_, nullptr, 0, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &possible, &rest, nullptr, 0, 2),
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

TEST_F(GreenApi, OnlyPartsOfOneSplitAreDescribedTogether) {
  std::vector<CUdevResource> groups = split(2);
  CUdevResourceDesc description = nullptr;
  EXPECT_CU(cuDevResourceGenerateDesc(&description, groups.data(), 2));
  groups[1] = split(2)[1];
  EXPECT_EQ(cuDevResourceGenerateDesc(&description, groups.data(), 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CUdevResource none{};
  EXPECT_EQ(cuDevResourceGenerateDesc(&description, &none, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
}

TEST_F(GreenApi, KernelsStayOnTheSmsOfTheirStream) {
  const auto groups = split(2);
  const CUstream low = stream(make(groups[0])), high = stream(make(groups[1]));
  Word* flag = words(1);
  EXPECT_CU(launch_wait(flag, 6, 1024, high));
  expect_newest_on({0, 0, 2, 2});
  EXPECT_CU(launch_wait(flag, 1, 32, low));  // although the previous one waits for SMs
  expect_newest_on({1, 0, 0, 0});
  *flag = 1;
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(GreenApi, ACooperativeGridMustFitIt) {
  const CUstream confined = stream(make(split(2)[0]));
  int per_sm = 0;
  const CUfunction count = function("count");
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, count, 256, 0));
  const auto fits = static_cast<unsigned>(per_sm * 2);
  EXPECT_CU(cuLaunchCooperativeKernel(count, fits, 1, 1, 256, 1, 1, 0, confined, nullptr));
  EXPECT_EQ(cuLaunchCooperativeKernel(count, fits + 1, 1, 1, 256, 1, 1, 0, confined, nullptr),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  EXPECT_CU(cuCtxSynchronize());
}

/// On a GPU of 64 SMs, whose groups are those of an H100.
class LargeGreenApi : public GreenApi {
 protected:
  static constexpr unsigned kPairs = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;

  void SetUp() override {
    use_private_table("64");
    ASSERT_CU(cuInit(0));
    GreenApi::SetUp();
  }

  CUresult launch_clusters(CUstream stream, unsigned blocks, unsigned x, unsigned y = 1) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = x;
    attribute.value.clusterDim.y = y;
    attribute.value.clusterDim.z = 1;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = blocks;
    config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cuLaunchKernelEx(&config, function("count"), nullptr, nullptr);
  }
};

TEST_F(LargeGreenApi, GroupsHaveEightSmsUnlessItDoesNotMatterWhich) {
  for (const unsigned least : {0U, 2U, 8U}) {
    EXPECT_EQ(split(least).size(), 8U);
    EXPECT_EQ(split(least)[0].sm.smCount, 8U);
  }
  EXPECT_EQ(split(10)[0].sm.smCount, 10U);
  EXPECT_EQ(split(2, nullptr, 64, CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE).size(), 8U);
  EXPECT_EQ(split(2, nullptr, 64, kPairs).size(), 32U);
  EXPECT_EQ(split(8, nullptr, 64, kPairs).size(), 8U);
  unsigned count = 1;
  CUdevResource one{};
  EXPECT_EQ(cuDevSmResourceSplitByCount(&one, &count, &all_, nullptr, 3, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LargeGreenApi, TheSmsOfAGroupDoNotHaveNumbersThatFollowEachOther) {
  const std::vector<CUdevResource> groups = split(8), pairs = split(2, nullptr, 64, kPairs);
  const auto expect_on = [this](CUgreenCtx part, std::initializer_list<unsigned> sms) {
    Word* flag = words(1);
    EXPECT_CU(launch_wait(flag, 16, 1024, stream(part)));
    Blocks expected(64);
    for (const unsigned sm : sms) expected[sm] = static_cast<Blocks::value_type>(16 / sms.size());
    expect_newest_on(expected);
    *flag = 1;
    EXPECT_CU(cuCtxSynchronize());
  };
  expect_on(make(groups[0]), {0, 1, 16, 17, 32, 33, 48, 49});
  expect_on(make(groups[7]), {14, 15, 30, 31, 46, 47, 62, 63});
  expect_on(make(std::vector(pairs.begin(), pairs.begin() + 4)), {0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_F(LargeGreenApi, ClustersOfMoreThanTwoBlocksDoNotRunInPairs) {
  const CUstream groups = stream(make(split(8)[0]));
  std::vector<CUdevResource> four = split(2, nullptr, 64, kPairs);
  four.resize(4);
  const CUstream pairs = stream(make(four));
  EXPECT_CU(launch_clusters(pairs, 8, 2));
  EXPECT_EQ(launch_clusters(pairs, 8, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch_clusters(pairs, 8, 2, 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_CU(launch_clusters(groups, 8, 8));
  EXPECT_EQ(launch_clusters(groups, 16, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch_clusters(groups, 9, 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(GreenApi, MakingOneWaitsForTheGpu) {
  CUdevResource part = split(2)[0];
  CUdevResourceDesc description = nullptr;
  EXPECT_CU(cuDevResourceGenerateDesc(&description, &part, 1));
  Word* flag = words(1);
  EXPECT_CU(launch_wait(flag, 1, 32, nullptr));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    *flag = 1;
  });
  CUgreenCtx green = nullptr;
  EXPECT_CU(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  EXPECT_EQ(*flag, 1U);
  later.join();
  greens_.push_back(green);
}

TEST_F(GreenApi, ItsStreamsAreOfThePrimaryContext) {
  const CUgreenCtx green = make(split(2)[1]);
  CUdevResource part{};
  EXPECT_CU(cuGreenCtxGetDevResource(green, &part, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(part.sm.smCount, 2U);
  CUstream confined = stream(green, -3);
  int priority = 0;
  unsigned flags = 0;
  CUcontext context = nullptr;
  CUgreenCtx its = nullptr;
  EXPECT_CU(cuStreamGetPriority(confined, &priority));
  EXPECT_EQ(priority, -3);
  EXPECT_CU(cuStreamGetFlags(confined, &flags));
  EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuStreamGetCtx(confined, &context));
  EXPECT_EQ(context, primary_);
  EXPECT_CU(cuStreamGetGreenCtx(confined, &its));
  EXPECT_EQ(its, green);
  EXPECT_CU(cuStreamGetGreenCtx(nullptr, &its));
  EXPECT_EQ(its, nullptr);
  EXPECT_EQ(cuGreenCtxStreamCreate(&confined, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GreenApi, ItEndsBeforeItsStreams) {
  const CUgreenCtx green = make(split(2)[0]);
  const CUstream confined = stream(green);
  greens_.clear();
  EXPECT_CU(cuGreenCtxDestroy(green));
  EXPECT_EQ(cuStreamSynchronize(confined), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuStreamDestroy(confined), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(GreenApi, KernelsOfOtherContextsDoNotRunThere) {
  const CUstream confined = stream(make(split(2)[0]));
  EXPECT_CU(cuCtxSetCurrent(context_));
  CUmodule module = nullptr;
  CUfunction count = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, kTestPtx));
  EXPECT_CU(cuModuleGetFunction(&count, module, "count"));
  EXPECT_EQ(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, confined, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuCtxSetCurrent(primary_));
}

}  // namespace
}  // namespace gpuctl::softgpu

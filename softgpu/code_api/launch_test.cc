#include <cstring>
#include <vector>

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {
namespace {

class LaunchApi : public ApiTest {};

TEST_F(LaunchApi, AddsVectors) {
  constexpr unsigned kCount = 10000;
  Word* a = words(kCount);
  Word* b = words(kCount);
  Word* c = words(kCount);
  for (unsigned i = 0; i < kCount; ++i) {
    a[i] = i;
    b[i] = 5 * i + 1;
  }
  unsigned count = kCount;
  void* params[] = {&a, &b, &c, &count};
  EXPECT_CU(cuLaunchKernel(function("add"), (kCount + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  for (unsigned i = 0; i < kCount; ++i) ASSERT_EQ(c[i], 6 * i + 1) << i;
}

TEST_F(LaunchApi, TakesParametersFromABuffer) {
  Word* word = words(1);
  struct {
    Word* address;
    unsigned value;
  } packed{word, 77};
  std::size_t bytes = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  EXPECT_CU(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(*word, 77U);
  bytes = 8;
  EXPECT_EQ(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LaunchApi, ParametersAreCopiedAtTheLaunch) {
  Word* word = words(2);
  EXPECT_CU(launch_wait(word + 1, 1, 32, nullptr));
  unsigned value = 1;
  void* params[] = {&word, &value};
  EXPECT_CU(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  value = 2;
  word[1] = 1;
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(*word, 1U);
}

TEST_F(LaunchApi, LaunchKernelExReadsAttributes) {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attribute.value.priority = -2;
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_CU(cuLaunchKernelEx(&config, function("count"), nullptr, nullptr));
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = attribute.value.clusterDim.y = attribute.value.clusterDim.z = 2;
  EXPECT_EQ(cuLaunchKernelEx(&config, function("count"), nullptr, nullptr), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  config.gridDimX = config.gridDimY = config.gridDimZ = 2;
  EXPECT_CU(cuLaunchKernelEx(&config, function("count"), nullptr, nullptr));
}

TEST_F(LaunchApi, ACapturedLaunchKeepsItsClusters) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = 4;
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  CUlaunchConfig config{};
  config.gridDimX = 8;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_CU(cuStreamCreate(&config.hStream, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuStreamBeginCapture(config.hStream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(cuLaunchKernelEx(&config, function("count"), nullptr, nullptr));
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(config.hStream, &graph));
  CUgraphNode node = nullptr;
  std::size_t nodes = 1;
  EXPECT_CU(cuGraphGetNodes(graph, &node, &nodes));
  CUkernelNodeAttrValue value{};
  EXPECT_CU(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
  EXPECT_EQ(value.clusterDim.x, 4u);
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CU(cuStreamDestroy(config.hStream));
}

TEST_F(LaunchApi, ACooperativeGridMustFit) {
  const CUfunction count = function("count");
  int per_sm = 0, sms = 0;
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, count, 256, 0));
  EXPECT_CU(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  const auto fits = static_cast<unsigned>(per_sm * sms);
  EXPECT_CU(cuLaunchCooperativeKernel(count, fits, 1, 1, 256, 1, 1, 0, nullptr, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(cuLaunchCooperativeKernel(count, fits + 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimX = fits + 1;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 256;
  config.blockDimY = config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_EQ(cuLaunchKernelEx(&config, count, nullptr, nullptr), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  attribute.value.cooperative = 0;
  EXPECT_CU(cuLaunchKernelEx(&config, count, nullptr, nullptr));
}

TEST_F(LaunchApi, CooperativeLaunchesAreNotCaptured) {
  CUstream stream = nullptr;
  EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuLaunchCooperativeKernel(function("count"), 1, 1, 1, 1, 1, 1, 0, stream, nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream, &graph));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CU(cuStreamDestroy(stream));
}

TEST_F(LaunchApi, RefusesImpossibleShapes) {
  const CUfunction count = function("count");
  EXPECT_EQ(cuLaunchKernel(count, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(count, 1, 65536, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(count, 1, 1, 1, 1024, 2, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 50000, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(function("shared_heavy"), 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  int not_a_function = 0;
  EXPECT_EQ(
      cuLaunchKernel(reinterpret_cast<CUfunction>(&not_a_function), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
      CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LaunchApi, LargeSharedMemoryNeedsTheAttribute) {
  const CUfunction count = function("count");
  EXPECT_CU(cuFuncSetAttribute(count, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024));
  EXPECT_CU(cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 227 * 1024, nullptr, nullptr, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(cuFuncSetAttribute(count, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 * 1024),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LaunchApi, OccupancyFollowsTheLimits) {
  int blocks = 0;
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("add"), 256, 0));
  EXPECT_EQ(blocks, 8);
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("add"), 32, 0));
  EXPECT_EQ(blocks, 32);
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("shared_heavy"), 128, 0));
  EXPECT_EQ(blocks, 5);  // 40 KiB + 1 KiB each, of 228 KiB
  std::size_t bytes = 0;
  EXPECT_CU(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function("add"), 2, 128));
  EXPECT_EQ(bytes, 113U * 1024);
  int grid = 0;
  int block = 0;
  EXPECT_CU(cuOccupancyMaxPotentialBlockSize(&grid, &block, function("add"), nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 8);
}

TEST_F(LaunchApi, FunctionsTellTheirParameters) {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  EXPECT_CU(cuFuncGetParamInfo(function("add"), 3, &offset, &bytes));
  EXPECT_EQ(offset, 24U);
  EXPECT_EQ(bytes, 4U);
  EXPECT_EQ(cuFuncGetParamInfo(function("add"), 4, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  int value = 0;
  EXPECT_CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function("shared_heavy")));
  EXPECT_EQ(value, 40960);
  EXPECT_CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function("shared_heavy")));
  EXPECT_EQ(value, 128);
  const char* name = nullptr;
  EXPECT_CU(cuFuncGetName(&name, function("add")));
  EXPECT_STREQ(name, "add");
}

TEST_F(LaunchApi, ModulesHaveTheirOwnVariables) {
  CUmodule second = nullptr;
  ASSERT_CU(cuModuleLoadData(&second, kTestPtx));
  EXPECT_CU(cuLaunchKernel(function("count"), 3, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  const auto counter_of = [](CUmodule module) {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    EXPECT_CU(cuModuleGetGlobal(&address, &bytes, module, "counter"));
    EXPECT_EQ(bytes, 4U);
    unsigned value = 0;
    EXPECT_CU(cuMemcpyDtoH(&value, address, 4));
    return value;
  };
  EXPECT_EQ(counter_of(module_), 10U);
  EXPECT_EQ(counter_of(second), 7U);
  EXPECT_CU(cuModuleUnload(second));
  CUfunction gone = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&gone, second, "count"), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleGetFunction(&gone, module_, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(LaunchApi, KernelsOfALibraryLaunchAsFunctions) {
  CUlibrary library = nullptr;
  ASSERT_CU(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned kernels = 0;
  EXPECT_CU(cuLibraryGetKernelCount(&kernels, library));
  EXPECT_EQ(kernels, 6U);
  CUkernel kernel = nullptr;
  ASSERT_CU(cuLibraryGetKernel(&kernel, library, "count"));
  EXPECT_CU(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 2, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CUfunction function = nullptr;
  EXPECT_CU(cuKernelGetFunction(&function, kernel));
  EXPECT_CU(cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  CUdeviceptr address = 0;
  EXPECT_CU(cuLibraryGetGlobal(&address, nullptr, library, "counter"));
  EXPECT_EQ(*reinterpret_cast<Word*>(address), 11U);
  EXPECT_CU(cuLibraryUnload(library));
  EXPECT_EQ(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LaunchApi, BadPtxIsExplainedInTheLog) {
  char log[256] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_80\n.address_size 64\n.entry {", 2, options, values),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::strstr(log, "4:"), nullptr) << log;
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), std::strlen(log));
}

TEST_F(LaunchApi, AWildStoreSpoilsTheContextForGood) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate(&other, nullptr, 0, 0));
  CUmodule module = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, kTestPtx));
  CUfunction store = nullptr;
  ASSERT_CU(cuModuleGetFunction(&store, module, "store"));
  CUdeviceptr wild = 0x500000000000;
  unsigned value = 1;
  void* params[] = {&wild, &value};
  EXPECT_CU(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAlloc(&memory, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CU(cuCtxDestroy(other));
  EXPECT_CU(cuCtxSetCurrent(context_));
  EXPECT_CU(cuMemAlloc(&memory, 4));  // another context of the process lives on
}

TEST_F(LaunchApi, DestroyingAContextEndsWhatWouldNeverEnd) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate(&other, nullptr, 0, 0));
  ASSERT_CU(cuModuleLoadData(&module_, kTestPtx));
  Word* flag = words(1);
  EXPECT_CU(launch_wait(flag, 4, 64, nullptr));
  EXPECT_CU(cuStreamWaitValue32(nullptr, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_CU(cuCtxDestroy(other));
}

}  // namespace
}  // namespace gpuctl::softgpu

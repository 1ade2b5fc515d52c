// Tests what a fault of a kernel does to its context, and how the context recovers.
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {
namespace {

/// One kernel for each kind of fault. trap_or_wait(flag): block 0 traps, the others sleep until *flag != 0.
constexpr char kFaultPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 said[6] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
.global .align 1 .b8 func[33] = {97, 95, 102, 117, 110, 99, 116, 105, 111, 110, 95, 119, 105, 116, 104, 95, 97, 95, 108, 111, 110, 103, 95, 110, 97, 109, 101, 40, 105, 110, 116, 41, 0};

.visible .entry trap_or_wait(.param .u64 flag)
{
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %rd<1>;
  mov.u32 %r0, %ctaid.x;
  setp.ne.u32 %p, %r0, 0;
  @%p bra again;
  trap;
again:
  ld.param.u64 %rd0, [flag];
  ld.relaxed.sys.global.u32 %r1, [%rd0];
  setp.ne.u32 %p, %r1, 0;
  @%p bra done;
  nanosleep.u32 100000;
  bra again;
done:
  ret;
}

.visible .entry assertion(.param .u64 unused)
{
  .reg .pred %p;
  .reg .b32 %r<1>;
  .reg .b64 %rd<3>;
  .param .b64 p0, p1, p3, p4;
  .param .b32 p2;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p, %r0, 1;
  @%p bra done;
  mov.u64 %rd0, said;
  mov.u64 %rd1, file;
  mov.u64 %rd2, func;
  st.param.b64 [p0], %rd0;
  st.param.b64 [p1], %rd1;
  st.param.b32 [p2], 42;
  st.param.b64 [p3], %rd2;
  st.param.b64 [p4], 1;
  call.uni __assertfail, (p0, p1, p2, p3, p4);
done:
  ret;
}

.visible .entry trapping(.param .u64 unused)
{
  trap;
}

.visible .entry illegal_address(.param .u64 unused)
{
  .reg .b64 %rd<1>;
  mov.u64 %rd0, 0x500000000000;
  st.global.u32 [%rd0], 1;
  ret;
}

.visible .entry misaligned(.param .u64 address)
{
  .reg .b64 %rd<1>;
  ld.param.u64 %rd0, [address];
  add.u64 %rd0, %rd0, 2;
  st.global.u32 [%rd0], 1;
  ret;
}

.visible .entry illegal_instruction(.param .u64 unused)
{
  .reg .b32 %r<1>;
  mov.u32 %r0, 99;
  bar.sync %r0;
  ret;
}

.visible .entry no_code(.param .u64 address)
{
  .reg .b64 %rd<1>;
  ld.param.u64 %rd0, [address];
  prototype: .callprototype _ _ ();
  call %rd0, (), prototype;
  ret;
}

.func deeper(.param .b32 n)
{
  .reg .b32 %r<1>;
  .param .b32 p;
  .local .align 4 .b8 room[4096];
  ld.param.b32 %r0, [n];
  add.u32 %r0, %r0, 1;
  st.param.b32 [p], %r0;
  call.uni deeper, (p);
  ret;
}

.visible .entry stack_overflow(.param .u64 unused)
{
  .param .b32 p;
  st.param.b32 [p], 0;
  call.uni deeper, (p);
  ret;
}
)";

class FaultApi : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    ASSERT_CU(cuModuleLoadData(&faults_, kFaultPtx));
    flag_ = words(4);
    for (CUstream* stream : {&a_, &b_}) ASSERT_CU(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
  }

  CUresult launch(const char* name, unsigned blocks, unsigned threads, CUstream stream) {
    CUfunction kernel = nullptr;
    if (const CUresult found = cuModuleGetFunction(&kernel, faults_, name); found != CUDA_SUCCESS) return found;
    void* params[] = {&flag_};
    return cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, params, nullptr);
  }

  /// Makes the context broken, without waiting for a kernel that does not fault.
  void trap() {
    ASSERT_CU(launch("trapping", 1, 1, b_));
    ASSERT_EQ(cuStreamSynchronize(b_), CUDA_ERROR_LAUNCH_FAILED);
  }

  CUmodule faults_ = nullptr;
  CUstream a_ = nullptr, b_ = nullptr;
  Word* flag_ = nullptr;
};

class FaultKinds : public FaultApi, public testing::WithParamInterface<std::pair<const char*, CUresult>> {};

TEST_P(FaultKinds, HaveTheirErrors) {
  EXPECT_CU(launch(GetParam().first, 1, 32, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), GetParam().second);
  const char* name = nullptr;
  EXPECT_CU(cuGetErrorName(GetParam().second, &name));
}

INSTANTIATE_TEST_SUITE_P(All, FaultKinds,
                         testing::Values(std::pair{"trapping", CUDA_ERROR_LAUNCH_FAILED},
                                         std::pair{"assertion", CUDA_ERROR_ASSERT},
                                         std::pair{"illegal_address", CUDA_ERROR_ILLEGAL_ADDRESS},
                                         std::pair{"misaligned", CUDA_ERROR_MISALIGNED_ADDRESS},
                                         std::pair{"illegal_instruction", CUDA_ERROR_ILLEGAL_INSTRUCTION},
                                         std::pair{"no_code", CUDA_ERROR_INVALID_PC},
                                         std::pair{"stack_overflow", CUDA_ERROR_HARDWARE_STACK_ERROR}),
                         [](const auto& row) { return row.param.first; });

TEST_F(FaultApi, AFailedAssertionSaysWhereItStood) {
  testing::internal::CaptureStderr();
  EXPECT_CU(launch("assertion", 1, 2, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "a.cu:42: a_function_with_a_long_name(int): block: [0,0,0], thread: [1,0,0] Assertion `x > 0` failed.\n");
}

TEST_F(FaultApi, WhatAKernelSaysIsWrittenWhenTheProgramWaits) {
  testing::internal::CaptureStderr();
  EXPECT_CU(launch("assertion", 1, 2, nullptr));
  while (cuStreamQuery(nullptr) != CUDA_ERROR_ASSERT) std::this_thread::yield();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
  EXPECT_NE(testing::internal::GetCapturedStderr(), "");
}

TEST_F(FaultApi, StopsTheOtherBlocksOfItsKernel) {
  EXPECT_CU(launch("trap_or_wait", 1000, 64, nullptr));  // more than fit: blocks that wait for an SM do not run either
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(FaultApi, StopsOtherKernelsAndWhatWaitsInStreams) {
  static std::atomic<int> ran;
  static std::atomic<int> told;
  ran = told = 0;
  EXPECT_CU(launch_wait(flag_, 2, 64, a_));
  EXPECT_CU(launch_mark(flag_ + 1, flag_ + 2, a_));
  EXPECT_CU(cuStreamWriteValue32(a_, reinterpret_cast<CUdeviceptr>(flag_ + 3), 1, 0));
  EXPECT_CU(cuLaunchHostFunc(
      a_, [](void*) { ++ran; }, nullptr));
  EXPECT_CU(cuStreamAddCallback(
      a_, [](CUstream, CUresult result, void*) { told = result; }, nullptr, 0));
  trap();
  EXPECT_EQ(cuStreamSynchronize(a_), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  for (int i = 0; i < 10000 && told == 0; ++i) usleep(1000);
  EXPECT_EQ(told, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(flag_[1], 0U);
  EXPECT_EQ(flag_[3], 0U);
}

TEST_F(FaultApi, EveryCallInTheContextSaysSo) {
  constexpr CUresult kBroken = CUDA_ERROR_LAUNCH_FAILED;
  CUevent event = nullptr, second = nullptr;
  ASSERT_CU(cuEventCreate(&event, 0));
  ASSERT_CU(cuEventCreate(&second, 0));
  ASSERT_CU(cuEventRecord(event, a_));
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphCreate(&graph, 0));
  ASSERT_CU(cuGraphInstantiate(&exec, graph, 0));
  const CUfunction count = function("count");
  const auto address = reinterpret_cast<CUdeviceptr>(flag_);
  trap();
  CUdeviceptr memory = 0;
  void* host = nullptr;
  int low = 0, high = 0;
  float ms = 0;
  std::size_t bytes = 0;
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  CUfunction found = nullptr;
  unsigned word = 0;
  EXPECT_EQ(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), kBroken);
  EXPECT_EQ(cuMemAlloc(&memory, 4), kBroken);
  EXPECT_EQ(cuMemAllocHost(&host, 4), kBroken);
  EXPECT_EQ(cuMemAllocManaged(&memory, 4, CU_MEM_ATTACH_GLOBAL), kBroken);
  EXPECT_EQ(cuMemAllocAsync(&memory, 4, a_), kBroken);
  EXPECT_EQ(cuMemFree(address), kBroken);
  EXPECT_EQ(cuMemFreeAsync(address, a_), kBroken);
  EXPECT_EQ(cuMemcpyDtoH(&word, address, 4), kBroken);
  EXPECT_EQ(cuMemcpyHtoDAsync(address, &word, 4, a_), kBroken);
  EXPECT_EQ(cuMemsetD32(address, 1, 1), kBroken);
  EXPECT_EQ(cuMemGetInfo(&bytes, &bytes), kBroken);
  EXPECT_EQ(cuMemAddressReserve(&memory, 2 << 20, 0, 0, 0), kBroken);
  EXPECT_EQ(cuCtxSynchronize(), kBroken);
  EXPECT_EQ(cuCtxGetStreamPriorityRange(&low, &high), kBroken);
  EXPECT_EQ(cuStreamCreate(&stream, 0), kBroken);
  EXPECT_EQ(cuStreamQuery(a_), kBroken);
  EXPECT_EQ(cuStreamSynchronize(a_), kBroken);
  EXPECT_EQ(cuStreamWaitEvent(a_, event, 0), kBroken);
  EXPECT_EQ(cuStreamGetPriority(a_, &low), kBroken);
  EXPECT_EQ(cuStreamWaitValue32(a_, address, 1, 0), kBroken);
  EXPECT_EQ(cuEventCreate(&second, 0), kBroken);
  EXPECT_EQ(cuEventRecord(event, a_), kBroken);
  EXPECT_EQ(cuEventQuery(event), kBroken);
  EXPECT_EQ(cuEventSynchronize(event), kBroken);
  EXPECT_EQ(cuEventElapsedTime(&ms, event, event), kBroken);
  EXPECT_EQ(cuGraphLaunch(exec, a_), kBroken);
  EXPECT_EQ(cuModuleLoadData(&module, kTestPtx), kBroken);
  EXPECT_EQ(cuModuleGetFunction(&found, module_, "count"), kBroken);
  EXPECT_EQ(cuModuleUnload(module_), kBroken);
  EXPECT_EQ(cuEventDestroy(event), kBroken);
  EXPECT_EQ(cuStreamDestroy(a_), kBroken);
  CUcontext current = nullptr;
  EXPECT_CU(cuCtxGetCurrent(&current));  // needs no work of the device
  EXPECT_EQ(current, context_);
}

TEST_F(FaultApi, NobodyWaitsForWhatHasNotEnded) {
  static std::atomic<bool> running, may_end;
  running = may_end = false;
  EXPECT_CU(cuLaunchHostFunc(
      a_,
      [](void*) {
        running = true;
        while (!may_end) usleep(1000);
      },
      nullptr));
  while (!running) usleep(1000);
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&event, 0));
  ASSERT_CU(cuEventRecord(event, a_));
  CUresult waited[3] = {};
  const auto wait = [&](int index, auto call) {
    return std::thread([this, index, call, &waited] {
      EXPECT_CU(cuCtxSetCurrent(context_));
      waited[index] = call();
    });
  };
  unsigned word = 0;
  std::thread threads[] = {
      wait(0, [this] { return cuStreamSynchronize(a_); }),
      wait(1, [event] { return cuEventSynchronize(event); }),
      wait(2, [&word, this] { return cuMemcpyDtoHAsync(&word, reinterpret_cast<CUdeviceptr>(flag_), 4, a_); }),
  };
  usleep(20'000);  // most likely they wait by now; their result does not depend on it
  EXPECT_CU(launch("trapping", 1, 1, b_));
  for (std::thread& thread : threads) thread.join();
  for (const CUresult result : waited) EXPECT_EQ(result, CUDA_ERROR_LAUNCH_FAILED);
  may_end = true;
}

TEST_F(FaultApi, OfOneContextLeavesAnotherAlone) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate(&other, nullptr, 0, 0));
  CUmodule module = nullptr;
  CUfunction count = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, kTestPtx));
  ASSERT_CU(cuModuleGetFunction(&count, module, "count"));
  ASSERT_CU(cuCtxSetCurrent(context_));
  trap();
  ASSERT_CU(cuCtxSetCurrent(other));
  EXPECT_CU(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(cuStreamSynchronize(a_), CUDA_ERROR_LAUNCH_FAILED);  // a stream of the broken context
  EXPECT_CU(cuCtxDestroy(other));
}

TEST_F(FaultApi, ADestroyedContextTakesItsQueuedKernelsOutOfTheQueue) {
  CUcontext other = nullptr;
  const CUfunction wait = function("wait_for");
  constexpr int kShared = 200 * 1024;
  ASSERT_CU(cuFuncSetAttribute(wait, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kShared));
  void* params[] = {&flag_};
  EXPECT_CU(cuLaunchKernel(wait, 4, 1, 1, 1024, 1, 1, kShared, a_, params, nullptr));  // all SMs
  ASSERT_CU(cuCtxCreate(&other, nullptr, 0, 0));
  CUmodule module = nullptr;
  CUfunction queued = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, kTestPtx));
  ASSERT_CU(cuModuleGetFunction(&queued, module, "wait_for"));
  ASSERT_CU(cuFuncSetAttribute(queued, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kShared));
  EXPECT_CU(cuLaunchKernel(queued, 8, 1, 1, 1024, 1, 1, kShared, nullptr, params, nullptr));
  EXPECT_CU(cuCtxDestroy(other));
  EXPECT_EQ(cuStreamQuery(a_), CUDA_ERROR_NOT_READY);
  *flag_ = 1;
  EXPECT_CU(cuStreamSynchronize(a_));
}

TEST_F(FaultApi, TheNextPrimaryContextWorks) {
  CUcontext primary = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&primary, 0));
  ASSERT_CU(cuCtxPushCurrent(primary));
  ASSERT_CU(cuModuleLoadData(&faults_, kFaultPtx));
  EXPECT_CU(launch("illegal_address", 1, 1, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CU(cuDevicePrimaryCtxReset(0));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CUcontext next = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&next, 0));
  ASSERT_CU(cuCtxSetCurrent(next));
  ASSERT_CU(cuModuleLoadData(&module_, kTestPtx));
  EXPECT_CU(cuLaunchKernel(function("count"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_CU(cuCtxPopCurrent(&next));
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
}

/// Whether this process can read a byte there.
bool readable(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool result = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return result;
}

TEST_F(FaultApi, HostMemoryOfADestroyedContextIsGone) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate(&other, nullptr, 0, 0));
  void* host = nullptr;
  ASSERT_CU(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  ASSERT_CU(cuModuleLoadData(&faults_, kFaultPtx));
  EXPECT_CU(launch("trapping", 1, 1, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(readable(host));  // the fault alone takes nothing away
  EXPECT_CU(cuCtxDestroy(other));
  EXPECT_FALSE(readable(host));
}

}  // namespace
}  // namespace gpuctl::softgpu

// Shared by the tests of the driver API: a private SM table, a context, and a few kernels.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace gpuctl::softgpu {

/// add(a, b, c, n): c[i] = a[i] + b[i] of u32. wait_for(flag): each thread sleeps until *flag != 0.
/// mark(next, slot): the first thread of each block puts the old value of (*next)++ into slot[ctaid.x].
/// store(address, value). count(): adds 1 to the variable `counter`.
inline constexpr char kTestPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter = 7;

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd0, [a];
  ld.param.u64 %rd1, [b];
  ld.param.u64 %rd2, [c];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0;
  @%p ret;
  mul.wide.u32 %rd3, %r4, 4;
  add.u64 %rd4, %rd0, %rd3;
  add.u64 %rd5, %rd1, %rd3;
  add.u64 %rd6, %rd2, %rd3;
  ld.global.u32 %r5, [%rd4];
  ld.global.u32 %r6, [%rd5];
  add.u32 %r7, %r5, %r6;
  st.global.u32 [%rd6], %r7;
  ret;
}

.visible .entry wait_for(.param .u64 flag)
{
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [flag];
again:
  ld.relaxed.sys.global.u32 %r0, [%rd0];
  setp.ne.u32 %p, %r0, 0;
  @%p bra done;
  nanosleep.u32 200000;
  bra again;
done:
  ret;
}

.visible .entry mark(.param .u64 next, .param .u64 slot)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p, %r0, 0;
  @%p ret;
  ld.param.u64 %rd0, [next];
  ld.param.u64 %rd1, [slot];
  atom.global.add.u32 %r1, [%rd0], 1;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}

.visible .entry store(.param .u64 address, .param .u32 value)
{
  .reg .b32 %r<1>;
  .reg .b64 %rd<1>;
  ld.param.u64 %rd0, [address];
  ld.param.u32 %r0, [value];
  st.relaxed.sys.global.u32 [%rd0], %r0;
  ret;
}

.visible .entry count()
{
  .reg .b32 %r<1>;
  .reg .b64 %rd<1>;
  mov.u64 %rd0, counter;
  atom.global.add.u32 %r0, [%rd0], 1;
  ret;
}

.visible .entry shared_heavy()
.maxntid 128, 1, 1
{
  .shared .align 4 .b8 tile[40960];
  ret;
}
)";

/// A word that the host and running kernels share.
using Word = std::atomic<unsigned>;

#define EXPECT_CU(call) EXPECT_EQ(call, CUDA_SUCCESS)
#define ASSERT_CU(call) ASSERT_EQ(call, CUDA_SUCCESS)

/// Points the driver at a private table of this process before the first cuInit. Blocks take no modelled time, unless
/// the environment says so.
inline void use_private_table(const char* sms = "4") {
  static const std::string path = testing::TempDir() + "softgpu-test-" + std::to_string(getpid());
  setenv("SOFTGPU_TABLE", path.c_str(), 1);
  setenv("SOFTGPU_SMS", sms, 1);
  setenv("SOFTGPU_WARP_INSTRUCTION_NS", "0", 0);
  static const pid_t creator = getpid();  // forked children must not remove the file when they exit
  static const bool cleanup = std::atexit([] {
                                if (getpid() != creator) return;
                                for (const char* device : {"", "-1", "-2"}) std::remove((path + device).c_str());
                              }) == 0;
  (void)cleanup;
}

/// A new context for each test, with the kernels above loaded.
class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    use_private_table();
    ASSERT_CU(cuInit(0));
    ASSERT_CU(cuCtxCreate(&context_, nullptr, 0, 0));
    ASSERT_CU(cuModuleLoadData(&module_, kTestPtx));
  }

  void TearDown() override { EXPECT_CU(cuCtxDestroy(context_)); }

  CUfunction function(const char* name) {
    CUfunction result = nullptr;
    EXPECT_CU(cuModuleGetFunction(&result, module_, name));
    return result;
  }

  /// Zeroed memory that the host and kernels share.
  Word* words(std::size_t count) {
    CUdeviceptr address = 0;
    EXPECT_CU(cuMemAllocManaged(&address, count * 4, CU_MEM_ATTACH_GLOBAL));
    auto* result = reinterpret_cast<Word*>(address);
    for (std::size_t i = 0; i < count; ++i) result[i] = 0;
    return result;
  }

  CUresult launch_wait(Word* flag, unsigned blocks, unsigned threads, CUstream stream) {
    void* params[] = {&flag};
    return cuLaunchKernel(function("wait_for"), blocks, 1, 1, threads, 1, 1, 0, stream, params, nullptr);
  }

  CUresult launch_mark(Word* next, Word* slot, CUstream stream) {
    void* params[] = {&next, &slot};
    return cuLaunchKernel(function("mark"), 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr);
  }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

}  // namespace gpuctl::softgpu

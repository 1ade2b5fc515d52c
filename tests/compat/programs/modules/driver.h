// What the programs of the driver's interface share: a context, the names of errors, and a kernel in PTX with its
// result.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"

#define CHECK_DRIVER(call)                                                             \
  do {                                                                                 \
    const CUresult check_result_ = (call);                                             \
    if (check_result_ != CUDA_SUCCESS) {                                               \
      const char* check_name_ = "?";                                                   \
      cuGetErrorName(check_result_, &check_name_);                                     \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, check_name_); \
      std::exit(2);                                                                    \
    }                                                                                  \
  } while (0)

/// The primary context of device 0, current to this thread.
inline CUdevice use_device() {
  CUdevice device;
  CUcontext context;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_DRIVER(cuCtxSetCurrent(context));
  return device;
}

inline int architecture(CUdevice device) {
  int major = 0, minor = 0;
  CHECK_DRIVER(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CHECK_DRIVER(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  return major * 10 + minor;
}

/// `turn` of an element, which the kernels of these programs do `depth` times.
inline unsigned turn(unsigned x) {
  return (x * 1664525u + 1013904223u) ^ (x >> 7);
}

/// The same in CUDA C++, for NVRTC: work(data, count, depth).
inline constexpr const char* kWorkSource = R"(
extern "C" __global__ void work(unsigned* data, unsigned count, unsigned depth) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned x = data[i];
  for (unsigned turn = 0; turn < depth; ++turn) x = (x * 1664525u + 1013904223u) ^ (x >> 7);
  data[i] = x;
}
)";

/// And in PTX: the kernel `work`, and a kernel `scale` that multiplies by the module's variable `factor`.
inline constexpr const char* kWorkPtx = R"(
.version 7.8
.target sm_80
.address_size 64
.visible .global .align 4 .u32 factor = 3;
.visible .entry work(.param .u64 data, .param .u32 count, .param .u32 depth) {
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [count];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra DONE;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd2, %rd2, %rd3;
  ld.global.u32 %r6, [%rd2];
  ld.param.u32 %r7, [depth];
TURN:
  setp.eq.u32 %p2, %r7, 0;
  @%p2 bra STORE;
  shr.u32 %r8, %r6, 7;
  mad.lo.s32 %r9, %r6, 1664525, 1013904223;
  xor.b32 %r6, %r9, %r8;
  sub.u32 %r7, %r7, 1;
  bra TURN;
STORE:
  st.global.u32 [%rd2], %r6;
DONE:
  ret;
}
.visible .entry scale(.param .u64 data, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [count];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra DONE;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd2, %rd2, %rd3;
  ld.global.u32 %r6, [%rd2];
  ld.global.u32 %r7, [factor];
  mul.lo.s32 %r6, %r6, %r7;
  st.global.u32 [%rd2], %r6;
DONE:
  ret;
}
)";

/// How much the kernels do: less on the software GPU.
struct Amount {
  unsigned count, depth, launches;
};

inline Amount amount() {
  char name[256] = {};
  CHECK_DRIVER(cuDeviceGetName(name, sizeof name - 1, 0));
  if (std::strstr(name, "software")) return {2048, 4, 5};
  return {1 << 20, 500, 50};
}

/// Elements 0, 1, 2... on the device.
inline CUdeviceptr numbers(unsigned count) {
  std::vector<unsigned> host(count);
  for (unsigned i = 0; i < count; ++i) host[i] = i;
  CUdeviceptr device;
  CHECK_DRIVER(cuMemAlloc(&device, count * sizeof(unsigned)));
  CHECK_DRIVER(cuMemcpyHtoD(device, host.data(), count * sizeof(unsigned)));
  return device;
}

/// Launches `work` on new numbers and prints whether they became what they should, and their hash.
inline void run_work(const char* name, CUfunction function, const Amount& amount) {
  CUdeviceptr data = numbers(amount.count);
  unsigned count = amount.count, depth = amount.depth;
  void* arguments[] = {&data, &count, &depth};
  for (unsigned i = 0; i < amount.launches; ++i)
    CHECK_DRIVER(cuLaunchKernel(function, (count + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK_DRIVER(cuCtxSynchronize());
  std::vector<unsigned> got(count);
  CHECK_DRIVER(cuMemcpyDtoH(got.data(), data, count * sizeof(unsigned)));
  CHECK_DRIVER(cuMemFree(data));
  int wrong = 0;
  for (unsigned i = 0; i < count; i += count / 61) {
    unsigned x = i;
    for (unsigned done = 0; done < depth * amount.launches; ++done) x = turn(x);
    wrong += got[i] != x;
  }
  std::printf("%s %s\n", name, wrong == 0 ? "right" : "WRONG");
  print_hash(name, got.data(), count * sizeof(unsigned));
}

/// Launches `scale` once on new numbers and prints the factor it found.
inline void run_scale(const char* name, CUfunction function, unsigned count) {
  CUdeviceptr data = numbers(count);
  void* arguments[] = {&data, &count};
  CHECK_DRIVER(cuLaunchKernel(function, (count + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
  std::vector<unsigned> got(count);
  CHECK_DRIVER(cuMemcpyDtoH(got.data(), data, count * sizeof(unsigned)));
  CHECK_DRIVER(cuMemFree(data));
  int wrong = 0;
  for (unsigned i = 0; i < count; ++i) wrong += got[i] != i * got[1];
  std::printf("%s times %u %s\n", name, got[1], wrong == 0 ? "right" : "WRONG");
}

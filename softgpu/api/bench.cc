// Measures how much of the host the software GPU needs when all its SMs are busy, and how soon a kernel starts. Prints,
// for kernels of different block shapes, the CPU time that one second of a full GPU costs (in cores), and the latency
// of an almost empty launch. Run it with SOFTGPU_WARP_INSTRUCTION_NS set to compare; see pacing.h.
#include <cuda.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

/// out[i] = out[i] * 3 + 1, loops times: eight instructions each, two of them global accesses.
constexpr char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry work(.param .u64 out, .param .u32 loops)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [out];
  ld.param.u32 %r0, [loops];
  mov.u32 %r1, %ctaid.x;
  and.b32 %r1, %r1, 1023;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd1, %r4, 4;
  add.u64 %rd2, %rd0, %rd1;
again:
  setp.eq.u32 %p, %r0, 0;
  @%p bra done;
  sub.u32 %r0, %r0, 1;
  ld.global.u32 %r5, [%rd2];
  mad.lo.u32 %r5, %r5, 3, 1;
  add.u32 %r6, %r5, %r0;
  st.global.u32 [%rd2], %r5;
  bra again;
done:
  ret;
}
)";

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s: %s\n", what, name);
  std::exit(1);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main() {
  check(cuInit(0), "cuInit");
  CUcontext context = nullptr;
  check(cuCtxCreate(&context, nullptr, 0, 0), "cuCtxCreate");
  CUmodule module = nullptr;
  check(cuModuleLoadData(&module, kPtx), "cuModuleLoadData");
  CUfunction work = nullptr;
  check(cuModuleGetFunction(&work, module, "work"), "cuModuleGetFunction");
  CUdeviceptr out = 0;
  check(cuMemAlloc(&out, 4 << 20), "cuMemAlloc");
  int sms = 0;
  check(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), "cuDeviceGetAttribute");

  const auto run = [&](unsigned blocks, unsigned threads, unsigned loops) {
    void* params[] = {&out, &loops};
    check(cuLaunchKernel(work, blocks, 1, 1, threads, 1, 1, 0, nullptr, params, nullptr), "cuLaunchKernel");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
  };
  run(static_cast<unsigned>(sms) * 32, 64, 1);  // all threads exist from here on

  std::printf("%8s %6s %12s %10s %10s %12s\n", "threads", "loops", "blocks/s", "cpu cores", "ms/block", "cpu us/block");
  for (const unsigned threads : {1024U, 256U, 64U}) {
    const unsigned resident = static_cast<unsigned>(sms) * std::min(32U, 2048U / threads);
    for (const unsigned loops : {1U, 16U, 256U}) {
      const unsigned waves = loops == 256 ? 2 : 16;
      const unsigned blocks = resident * waves;
      const double cpu = cpu_seconds();
      const double wall = wall_seconds();
      run(blocks, threads, loops);
      const double took = wall_seconds() - wall;
      const double used = cpu_seconds() - cpu;
      std::printf("%8u %6u %12.0f %10.2f %10.2f %12.1f\n", threads, loops, blocks / took, used / took,
                  took / waves * 1e3, used / blocks * 1e6);
    }
  }

  std::vector<double> latencies;
  for (int i = 0; i < 200; ++i) {
    const double begin = wall_seconds();
    run(1, 32, 0);
    latencies.push_back((wall_seconds() - begin) * 1e6);
  }
  std::sort(latencies.begin(), latencies.end());
  std::printf("launch and synchronize, one block of one warp: p50 %.0f us, p99 %.0f us\n", latencies[100],
              latencies[198]);
  return 0;
}

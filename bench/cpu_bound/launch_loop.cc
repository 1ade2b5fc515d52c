// A loop that is bound by its CPU: launches of a kernel of some 2 us, each in the default stream, a thousand a step,
// with a wait at the end of every step. It launches sixteen kernels in turn, through the driver API.
//
// It takes turns with others as the Python programs beside it do (turns.py): it prints READY; each line on its standard
// input says for how many seconds to run, and it answers with the steps and the seconds that they took.
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int kKernels = 16, kLaunches = 1000;

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "launch-loop: %s: error %d\n", what, result);
  std::_Exit(1);
}

#define CHECK(call) check(call, #call)

/// Each thread counts down from `rounds`.
std::string ptx() {
  std::string text = ".version 6.4\n.target sm_75\n.address_size 64\n";
  for (int i = 0; i < kKernels; ++i) {
    text += ".visible .entry count" + std::to_string(i) + R"((.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p;
  .reg .u32 %r<3>;
  .reg .u64 %rd<2>;
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, 0;
AGAIN:
  mad.lo.u32 %r2, %r2, 1664525, %r1;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra AGAIN;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  unsigned rounds = count > 1 ? static_cast<unsigned>(std::atoi(arguments[1])) : 200;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernels[kKernels];
  CUdeviceptr out = 0;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, ptx().c_str()));
  for (int i = 0; i < kKernels; ++i)
    CHECK(cuModuleGetFunction(&kernels[i], module, ("count" + std::to_string(i)).c_str()));
  CHECK(cuMemAlloc(&out, 4));
  void* parameters[] = {&out, &rounds};
  const auto step = [&] {
    for (int i = 0; i < kLaunches; ++i)
      CHECK(cuLaunchKernel(kernels[i % kKernels], 8, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuStreamSynchronize(nullptr));
  };
  step();
  std::puts("READY");
  std::fflush(stdout);
  double seconds = 0;
  while (std::scanf("%lf", &seconds) == 1) {
    const auto begin = std::chrono::steady_clock::now();
    const auto took = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    int steps = 0;
    do {
      step();
      ++steps;
    } while (took() < seconds);
    std::printf("%d %.6f\n", steps, took());
    std::fflush(stdout);
  }
  return 0;
}

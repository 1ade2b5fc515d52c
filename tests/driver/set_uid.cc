// A program that is installed set-uid and linked with libgpuslice. Its caller's environment names files. It prints the
// slice that it is in, or "no slice", and how many results are wrong.
#include <gpuslice/gpuslice.h>
#include <sys/auxv.h>

#include "driver.h"
#include "kernels.h"

int main() {
  constexpr unsigned kThreads = 64, kBlocks = 30, kWords = kThreads * kBlocks;
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  const CUfunction kernel = load_kernel(kScramblePtx, "scramble");
  static unsigned host[kWords];
  CUdeviceptr device = 0;
  DRIVER_CHECK(cuMemAlloc(&device, sizeof host));
  unsigned seed = 3, iterations = 20, wrong = 0;
  void* parameters[] = {&device, &seed, &iterations};
  DRIVER_CHECK(cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters, nullptr));
  DRIVER_CHECK(cuMemcpyDtoH(host, device, sizeof host));
  for (unsigned i = 0; i < kWords; ++i) wrong += host[i] != scrambled(seed + i, iterations);
  char slice[256];
  const bool in_slice = gpuslice_slice(slice, sizeof slice) == GPUSLICE_OK;
  std::printf("%s rights, %s, %u wrong\n", getauxval(AT_SECURE) ? "more" : "same", in_slice ? slice : "no slice",
              wrong);
  return wrong == 0 ? 0 : 3;
}

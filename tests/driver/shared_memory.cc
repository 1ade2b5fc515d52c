// A kernel that counts on where its dynamic shared memory begins, as swizzled layouts do: threads hand words to each
// other at addresses of which some bits are turned by others. shared_memory [BYTES]: until SIGTERM its launches have so
// much of it or, by turns, no more than they need, somewhat more, and all that a block can have; the program asks for
// all of it first, whatever it launches with. Each word of each result is checked. The last line is "shared_memory: R
// results, W wrong"; exit status 0, or 3 when one was wrong.
#include <csignal>
#include <cstdlib>
#include <vector>

#include "driver.h"

namespace {

constexpr unsigned kThreads = 256, kBlocks = 250, kSteps = 60;
constexpr char kPtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.extern .shared .align 4 .b8 tile[];
.visible .entry swizzled(.param .u64 out_param, .param .u32 seed_param, .param .u32 steps_param)
{
  .reg .pred %p;
  .reg .u32 %r<9>;
  .reg .u64 %rd<3>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 2;
  add.u32 %r3, %r3, %r2;
  shr.u32 %r4, %r3, 3;
  and.b32 %r4, %r4, 112;
  xor.b32 %r3, %r3, %r4;
  mov.u32 %r4, %ctaid.x;
  mad.lo.u32 %r4, %r4, 256, %r1;
  ld.param.u32 %r5, [seed_param];
  add.u32 %r5, %r5, %r4;
  ld.param.u32 %r6, [steps_param];
STEP:
  st.shared.u32 [%r3], %r5;
  bar.sync 0;
  xor.b32 %r7, %r1, 255;
  shl.b32 %r7, %r7, 2;
  add.u32 %r7, %r7, %r2;
  shr.u32 %r8, %r7, 3;
  and.b32 %r8, %r8, 112;
  xor.b32 %r7, %r7, %r8;
  ld.shared.u32 %r5, [%r7];
  add.u32 %r5, %r5, 1;
  bar.sync 0;
  sub.u32 %r6, %r6, 1;
  setp.ne.u32 %p, %r6, 0;
  @%p bra STEP;
  ld.param.u64 %rd1, [out_param];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r5;
  ret;
}
)";

volatile std::sig_atomic_t over = 0;

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGTERM, [](int) { over = 1; });
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  CUfunction kernel = load_kernel(kPtx, "swizzled");
  int most = 0;
  DRIVER_CHECK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
  DRIVER_CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
  std::vector<unsigned> sizes = {4 * kThreads, 4 * kThreads + 1, 40'000, static_cast<unsigned>(most)};
  if (argc > 1) sizes = {static_cast<unsigned>(std::atoi(argv[1]))};
  std::vector<unsigned> words(std::size_t{kThreads} * kBlocks);
  CUdeviceptr out = 0;
  DRIVER_CHECK(cuMemAlloc(&out, words.size() * sizeof(unsigned)));
  unsigned results = 0, wrong = 0;
  while (over == 0) {
    unsigned seed = results, steps = 2 * kSteps;  // even: each thread's word comes back to it
    void* parameters[] = {&out, &seed, &steps};
    DRIVER_CHECK(cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, sizes[results++ % sizes.size()], nullptr,
                                parameters, nullptr));
    DRIVER_CHECK(cuMemcpyDtoH(words.data(), out, words.size() * sizeof(unsigned)));
    bool right = true;
    for (unsigned i = 0; i < words.size(); ++i) right &= words[i] == seed + i + steps;
    wrong += !right;
  }
  std::printf("shared_memory: %u results, %u wrong\n", results, wrong);
  return wrong == 0 ? 0 : 3;
}

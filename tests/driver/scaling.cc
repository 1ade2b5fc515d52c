// A kernel that scales with the SMs it has, or one that does not: scaling KIND [BLOCKS [KIB]], where KIND is
//   paced    block i is done i ms after the first block began, however many run at once: as a kernel that memory holds
//   up scales   each block takes 10 ms
// A block has KIB KiB of shared memory: 47 if not said, so that four blocks fit on an SM. Blocks sleep, so that neither
// depends on what else the processor has to do. One launch after the other until SIGTERM, each with every word of its
// result checked. Writes "started" to stderr after the first; the last line is "scaling: R results, M wrong"; exit
// status 0, or 3 when one was wrong.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "driver.h"

namespace {

constexpr int kSharedKib = 47;
constexpr char kPtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry paced(.param .u64 out_param, .param .u64 start_param)
{
  .reg .pred %p;
  .reg .u32 %r<3>;
  .reg .u64 %rd<9>;
  mov.u32 %r1, %ctaid.x;
  ld.param.u64 %rd1, [start_param];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u64 %rd2, %globaltimer;
  atom.global.cas.b64 %rd3, [%rd1], 0, %rd2;
  setp.eq.u64 %p, %rd3, 0;
  selp.b64 %rd3, %rd2, %rd3, %p;
  mul.wide.u32 %rd4, %r1, 1000000;
  add.u64 %rd4, %rd4, %rd3;
WAIT:
  nanosleep.u32 200000;
  mov.u64 %rd5, %globaltimer;
  setp.lt.u64 %p, %rd5, %rd4;
  @%p bra WAIT;
  ld.param.u64 %rd6, [out_param];
  cvta.to.global.u64 %rd6, %rd6;
  mul.wide.u32 %rd7, %r1, 4;
  add.u64 %rd8, %rd6, %rd7;
  add.u32 %r1, %r1, 1;
  atom.global.add.u32 %r2, [%rd8], %r1;
  ret;
}
.visible .entry scales(.param .u64 out_param, .param .u64 start_param)
{
  .reg .pred %p;
  .reg .u32 %r<4>;
  .reg .u64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r3, 0;
WAIT:
  nanosleep.u32 1000000;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p, %r3, 10;
  @%p bra WAIT;
  ld.param.u64 %rd1, [out_param];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  add.u32 %r1, %r1, 1;
  atom.global.add.u32 %r2, [%rd3], %r1;
  ret;
}
)";

volatile std::sig_atomic_t over = 0;

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc >= 2 && argc <= 4 ? argv[1] : "";
  const int shared_kib = argc == 4 ? std::atoi(argv[3]) : kSharedKib;
  const int wanted = argc >= 3 ? std::atoi(argv[2]) : kind == "paced" ? 40 : 160;
  if ((kind != "paced" && kind != "scales") || wanted < 1 || shared_kib < 0) {
    std::fprintf(stderr, "scaling paced|scales [BLOCKS [KIB]]\n");
    return 2;
  }
  std::signal(SIGTERM, [](int) { over = 1; });
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  CUfunction kernel = load_kernel(kPtx, kind.c_str());
  const int shared = shared_kib * 1024;
  DRIVER_CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared));
  const auto blocks = static_cast<unsigned>(wanted);
  std::vector<unsigned> words(blocks);
  CUdeviceptr out = 0, start = 0;
  DRIVER_CHECK(cuMemAlloc(&out, blocks * sizeof(unsigned)));
  DRIVER_CHECK(cuMemAlloc(&start, sizeof(std::uint64_t)));
  CUstream stream = nullptr;
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  unsigned results = 0, wrong = 0;
  while (over == 0) {
    void* parameters[] = {&out, &start};
    DRIVER_CHECK(cuMemsetD32Async(out, 0, blocks, stream));
    DRIVER_CHECK(cuMemsetD32Async(start, 0, 2, stream));
    DRIVER_CHECK(
        cuLaunchKernel(kernel, blocks, 1, 1, 1, 1, 1, static_cast<unsigned>(shared), stream, parameters, nullptr));
    DRIVER_CHECK(cuMemcpyDtoHAsync(words.data(), out, blocks * sizeof(unsigned), stream));
    DRIVER_CHECK(cuStreamSynchronize(stream));
    bool right = true;
    for (unsigned i = 0; i < blocks; ++i) right &= words[i] == i + 1;
    wrong += !right;
    if (++results == 1) std::fprintf(stderr, "started\n");
  }
  std::printf("scaling: %u results, %u wrong\n", results, wrong);
  return wrong == 0 ? 0 : 3;
}

// A kernel that can only be guarded: half of each block's threads arrive at a barrier without waiting, so another
// block-task in the same block would find it half full. guarded [ROWS [STREAMS]]: one launch of 25 * ROWS blocks of a
// millisecond (16) after the other, by turns in so many streams (1) of which each waits for the one before, until
// SIGTERM, each with every word of its result checked. Writes "started" to stderr after the first; the last line is
// "guarded: R results, M wrong"; exit status 0, or 3 when one was wrong.
#include <csignal>
#include <cstdlib>
#include <vector>

#include "driver.h"

namespace {

constexpr unsigned kWide = 25, kLanes = 32;
constexpr unsigned kShared = 46 * 1024;  ///< so that four blocks fit on an SM
constexpr char kPtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry hand_over(.param .u64 out_param)
{
  .reg .pred %p;
  .reg .u32 %r<8>;
  .reg .u64 %rd<3>;
  .shared .align 4 .b8 handed[128];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ctaid.y;
  mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r2, %r3, %r4, %r2;
  and.b32 %r5, %r1, 31;
  shl.b32 %r3, %r5, 2;
  mov.u32 %r4, handed;
  add.u32 %r3, %r3, %r4;
  mad.lo.u32 %r2, %r2, 32, %r5;
  setp.ge.u32 %p, %r1, 32;
  @%p bra TAKE;
  add.u32 %r6, %r2, 1;
  st.shared.u32 [%r3], %r6;
  bar.arrive 1, 64;
  ret;
TAKE:
  nanosleep.u32 1000000;
  bar.sync 1, 64;
  ld.shared.u32 %r6, [%r3];
  ld.param.u64 %rd1, [out_param];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd1, %rd1, %rd2;
  atom.global.add.u32 %r7, [%rd1], %r6;
  ret;
}
)";

volatile std::sig_atomic_t over = 0;

}  // namespace

int main(int argc, char** argv) {
  const int rows = argc > 1 ? std::atoi(argv[1]) : 16, wanted = argc > 2 ? std::atoi(argv[2]) : 1;
  if (argc > 3 || rows < 1 || wanted < 1) {
    std::fprintf(stderr, "guarded [ROWS [STREAMS]]\n");
    return 2;
  }
  const auto high = static_cast<unsigned>(rows);
  std::signal(SIGTERM, [](int) { over = 1; });
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  CUfunction kernel = load_kernel(kPtx, "hand_over");
  std::vector<unsigned> words(std::size_t{kWide} * high * kLanes);
  CUdeviceptr out = 0;
  CUevent done = nullptr;
  DRIVER_CHECK(cuMemAlloc(&out, words.size() * sizeof(unsigned)));
  DRIVER_CHECK(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
  std::vector<CUstream> streams(static_cast<std::size_t>(wanted));
  for (CUstream& stream : streams) DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  unsigned results = 0, wrong = 0;
  while (over == 0) {
    CUstream stream = streams[results % streams.size()];
    void* parameters[] = {&out};
    if (results > 0) DRIVER_CHECK(cuStreamWaitEvent(stream, done, 0));
    DRIVER_CHECK(cuMemsetD32Async(out, 0, words.size(), stream));
    DRIVER_CHECK(cuLaunchKernel(kernel, kWide, high, 1, 2 * kLanes, 1, 1, kShared, stream, parameters, nullptr));
    DRIVER_CHECK(cuEventRecord(done, stream));
    DRIVER_CHECK(cuMemcpyDtoHAsync(words.data(), out, words.size() * sizeof(unsigned), stream));
    DRIVER_CHECK(cuStreamSynchronize(stream));
    bool right = true;
    for (unsigned i = 0; i < words.size(); ++i) right &= words[i] == i + 1;
    wrong += !right;
    if (++results == 1) std::fprintf(stderr, "started\n");
  }
  std::printf("guarded: %u results, %u wrong\n", results, wrong);
  return wrong == 0 ? 0 : 3;
}

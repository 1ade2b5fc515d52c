// Two threads launch into one stream, with no order between them: one_stream ROUNDS. One kernel reads what the other
// one writes, backwards. Whichever comes first, it must be complete before the other begins, so two results are
// possible in each round. The last line is "one_stream: R rounds, M mixed"; exit status 0, or 3 when one was mixed.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "driver.h"

namespace {

/// turned(to, from, words, added): to[i] = from[words - 1 - i] + added.
constexpr char kTurnedPtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry turned(.param .u64 to_param, .param .u64 from_param, .param .u32 words_param, .param .u32 added_param)
{
  .reg .u32 %r<9>;
  .reg .u64 %rd<7>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [words_param];
  sub.u32 %r5, %r5, 1;
  sub.u32 %r5, %r5, %r4;
  ld.param.u64 %rd1, [from_param];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd2, %rd1, %rd2;
  ld.global.u32 %r6, [%rd2];
  ld.param.u32 %r7, [added_param];
  add.u32 %r6, %r6, %r7;
  ld.param.u64 %rd3, [to_param];
  cvta.to.global.u64 %rd3, %rd3;
  mul.wide.u32 %rd4, %r4, 4;
  add.u64 %rd4, %rd3, %rd4;
  st.global.u32 [%rd4], %r6;
  ret;
}
)";

constexpr unsigned kThreads = 64;
constexpr unsigned kBlocks = 1500;
constexpr unsigned kWords = kThreads * kBlocks;
constexpr unsigned kAddedByFirst = 1000, kAddedBySecond = 7;

CUfunction kernel = nullptr;
CUstream stream = nullptr;
CUdeviceptr words[2] = {0, 0};

void launch(CUdeviceptr to, CUdeviceptr from, unsigned added) {
  unsigned count = kWords;
  void* parameters[] = {&to, &from, &count, &added};
  DRIVER_CHECK(cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}

std::vector<unsigned> read(CUdeviceptr from) {
  std::vector<unsigned> result(kWords);
  DRIVER_CHECK(cuMemcpyDtoH(result.data(), from, kWords * sizeof(unsigned)));
  return result;
}

/// All words of the first memory are `a`, those of the second are `b`.
bool are(const std::vector<unsigned>& first, const std::vector<unsigned>& second, unsigned a, unsigned b) {
  return first == std::vector<unsigned>(kWords, a) && second == std::vector<unsigned>(kWords, b);
}

/// Returns whether one launch came after the other.
bool round() {
  const unsigned a = 5, b = 50'000;
  DRIVER_CHECK(cuMemsetD32Async(words[0], a, kWords, stream));
  DRIVER_CHECK(cuMemsetD32Async(words[1], b, kWords, stream));
  std::atomic<int> ready{0};
  const auto meet = [&ready] {
    use_first_gpu();
    ++ready;
    while (ready < 2) std::this_thread::yield();
  };
  std::thread other([&] {
    meet();
    launch(words[0], words[1], kAddedBySecond);
  });
  meet();
  launch(words[1], words[0], kAddedByFirst);
  other.join();
  DRIVER_CHECK(cuStreamSynchronize(stream));
  const std::vector<unsigned> first = read(words[0]), second = read(words[1]);
  return are(first, second, a + kAddedByFirst + kAddedBySecond, a + kAddedByFirst) ||
         are(first, second, b + kAddedBySecond, b + kAddedBySecond + kAddedByFirst);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int rounds = std::atoi(argv[1]);
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  kernel = load_kernel(kTurnedPtx, "turned");
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (CUdeviceptr& one : words) DRIVER_CHECK(cuMemAlloc(&one, kWords * sizeof(unsigned)));
  int mixed = 0;
  for (int i = 0; i < rounds; ++i) mixed += round() ? 0 : 1;
  std::printf("one_stream: %d rounds, %d mixed\n", rounds, mixed);
  return mixed == 0 ? 0 : 3;
}

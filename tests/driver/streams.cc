// Several streams with long kernels at the same time: streams STREAMS CRITICAL. The first CRITICAL of the streams are
// marked latency-critical. Each has a thread that launches scramble on it, two in flight, and checks every word of
// every result, until SIGTERM. The last line is "streams: R results, M wrong"; exit status 0, or 3 when one was wrong.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "driver.h"
#include "gpuslice/gpuslice.h"
#include "kernels.h"

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kBlocks = 1500;
constexpr unsigned kIterations = 20;
constexpr unsigned kWords = kThreads * kBlocks;

std::atomic<bool> over{false};

/// One launch at a time, with its own memory.
class Slot {
 public:
  Slot() {
    DRIVER_CHECK(cuMemAlloc(&device_, kWords * sizeof(unsigned)));
    void* host = nullptr;
    DRIVER_CHECK(cuMemAllocHost(&host, kWords * sizeof(unsigned)));
    host_ = static_cast<unsigned*>(host);
    DRIVER_CHECK(cuEventCreate(&done_, CU_EVENT_DISABLE_TIMING));
  }

  void launch(CUfunction kernel, CUstream stream, unsigned seed) {
    seed_ = seed;
    unsigned iterations = kIterations;
    void* parameters[] = {&device_, &seed_, &iterations};
    DRIVER_CHECK(cuMemsetD32Async(device_, 0, kWords, stream));
    DRIVER_CHECK(cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
    DRIVER_CHECK(cuMemcpyDtoHAsync(host_, device_, kWords * sizeof(unsigned), stream));
    DRIVER_CHECK(cuEventRecord(done_, stream));
  }

  bool right() {
    DRIVER_CHECK(cuEventSynchronize(done_));
    for (unsigned i = 0; i < kWords; ++i) {
      if (host_[i] != scrambled(seed_ + i, kIterations)) return false;
    }
    return true;
  }

 private:
  CUdeviceptr device_ = 0;
  unsigned* host_ = nullptr;
  CUevent done_ = nullptr;
  unsigned seed_ = 0;
};

struct Counts {
  unsigned results = 0;
  unsigned wrong = 0;
};

void work(CUfunction kernel, unsigned number, bool critical, Counts& counts) {
  use_first_gpu();
  CUstream stream = nullptr;
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  if (critical && gpuslice_stream_latency_critical(stream, 1) != GPUSLICE_OK) {
    std::fprintf(stderr, "stream %u cannot be marked\n", number);
    std::exit(1);
  }
  Slot slots[2];
  unsigned issued = 0;
  const auto finish = [&](Slot& slot) {
    ++counts.results;
    if (!slot.right()) ++counts.wrong;
  };
  for (; !over || issued < 2; ++issued) {
    Slot& slot = slots[issued % 2];
    if (issued >= 2) finish(slot);
    slot.launch(kernel, stream, number * 0x10000000u + issued);
  }
  for (unsigned last = 0; last < 2; ++last) finish(slots[(issued + last) % 2]);
  DRIVER_CHECK(cuStreamDestroy(stream));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto streams = static_cast<unsigned>(std::atoi(argv[1]));
  const auto critical = static_cast<unsigned>(std::atoi(argv[2]));
  std::signal(SIGTERM, [](int) { over = true; });
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  CUfunction kernel = load_kernel(kScramblePtx, "scramble");

  std::vector<Counts> counts(streams);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < streams; ++i) {
    threads.emplace_back([&, i] { work(kernel, i, i < critical, counts[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  Counts all;
  for (const Counts& one : counts) {
    all.results += one.results;
    all.wrong += one.wrong;
  }
  std::printf("streams: %u results, %u wrong\n", all.results, all.wrong);
  return all.wrong == 0 ? 0 : 3;
}

// A CUDA graph of kernels one behind the other and side by side, captured once and launched each round: graph_program
// SCALE ROUNDS. What a round leaves depends on what the one before left. SCALE: times 10,240 numbers.
#include <cstdlib>

#include "../driver/driver.h"
#include "../driver/graph_kernels.h"
#include "rounds.h"

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kBlocksAtScale1 = 80;
constexpr unsigned kIterations = 12;
constexpr unsigned kChain = 4;  // kernels on each side

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: graph_program SCALE ROUNDS\n");
    return 2;
  }
  const unsigned blocks = kBlocksAtScale1 * static_cast<unsigned>(std::atoi(argv[1]));
  const unsigned words = blocks * kThreads;
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  const CUfunction step = load_kernel(kGraphPtx, "step");
  const CUfunction combine = load_kernel(kGraphPtx, "combine");
  CUstream stream = nullptr, side = nullptr;
  CUevent fork = nullptr, join = nullptr;
  for (CUstream* one : {&stream, &side}) DRIVER_CHECK(cuStreamCreate(one, CU_STREAM_NON_BLOCKING));
  for (CUevent* one : {&fork, &join}) DRIVER_CHECK(cuEventCreate(one, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr left = 0;
  DRIVER_CHECK(cuMemAlloc(&left, 2 * words * sizeof(unsigned)));
  DRIVER_CHECK(cuMemsetD32(left, 7, 2 * words));
  DRIVER_CHECK(cuCtxSynchronize());
  CUdeviceptr right = left + words * sizeof(unsigned);

  const auto launch_step = [&](CUdeviceptr data, unsigned add, CUstream on) {
    unsigned iterations = kIterations;
    void* values[] = {&data, &add, &iterations};
    DRIVER_CHECK(cuLaunchKernel(step, blocks, 1, 1, kThreads, 1, 1, 0, on, values, nullptr));
  };
  DRIVER_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  DRIVER_CHECK(cuEventRecord(fork, stream));
  DRIVER_CHECK(cuStreamWaitEvent(side, fork, 0));
  for (unsigned i = 0; i < kChain; ++i) {
    launch_step(left, 2 * i + 1, stream);
    launch_step(right, 2 * i + 2, side);
  }
  DRIVER_CHECK(cuEventRecord(join, side));
  DRIVER_CHECK(cuStreamWaitEvent(stream, join, 0));
  void* both[] = {&left, &right};
  DRIVER_CHECK(cuLaunchKernel(combine, blocks, 1, 1, kThreads, 1, 1, 0, stream, both, nullptr));
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  DRIVER_CHECK(cuStreamEndCapture(stream, &graph));
  DRIVER_CHECK(cuGraphInstantiate(&executable, graph, 0));

  std::vector<unsigned char> bytes(2 * words * sizeof(unsigned));
  run_rounds({.name = "graph_program",
              .round = [&] { DRIVER_CHECK(cuGraphLaunch(executable, stream)); },
              .wait = [&] { DRIVER_CHECK(cuStreamSynchronize(stream)); },
              .contents =
                  [&] {
                    DRIVER_CHECK(cuMemcpyDtoH(bytes.data(), left, bytes.size()));
                    return bytes;
                  }},
             argv[2]);
  return 0;
}

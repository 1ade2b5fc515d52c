// Says which priority levels the kernels of a graph have on the software GPU:
//
//   graph_levels PRIORITY [LAUNCHED]
//
// captures a kernel in a stream of that priority, and another one that asks for the priority LAUNCHED, if given. It
// instantiates the graph so that its kernels keep their levels, and says `ready` and the flags that the driver reports.
// Then it answers each line of its input with one line:
//
//   graph PRIORITY    launches the graph into a stream of that priority: the levels that its kernels have
//   plain PRIORITY    the same of a kernel that is launched by itself
//   again PRIORITY    captures anew, in a stream of that priority, and updates the graph from it: the driver's code
#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "driver.h"
#include "kernels.h"
#include "softgpu/table/table.h"

namespace {

using gpuctl::softgpu::KernelView;
using gpuctl::softgpu::TableReader;

constexpr unsigned kBlocks = 3;  // by which the table's rows of these kernels are known
constexpr unsigned kMostKernels = 2;

CUfunction kernel = nullptr;
unsigned* flags = nullptr;  // one for each kernel, which waits for it
std::uint64_t seen = 0;     // the greatest ticket of a kernel so far

CUstream stream_of(int priority) {
  static std::map<int, CUstream> streams;
  CUstream& stream = streams[priority];
  if (!stream) DRIVER_CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
  return stream;
}

void launch(unsigned number, CUstream stream, const int* priority) {
  unsigned* flag = flags + number;
  void* parameters[] = {&flag};
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  if (priority) attribute.value.priority = *priority;
  const CUlaunchConfig config{.gridDimX = kBlocks,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = 1,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .sharedMemBytes = 0,
                              .hStream = stream,
                              .attrs = &attribute,
                              .numAttrs = priority ? 1u : 0u};
  DRIVER_CHECK(cuLaunchKernelEx(&config, kernel, parameters, nullptr));
}

CUgraph capture(int priority, const int* launched) {
  CUgraph graph = nullptr;
  CUstream stream = stream_of(priority);
  DRIVER_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  launch(0, stream, nullptr);
  if (launched) launch(1, stream, launched);
  DRIVER_CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

/// The level of the next of these kernels to run. Lets it end.
int next_level(const TableReader& table, unsigned number) {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    for (const KernelView& one : table.snapshot().kernels) {
      if (one.pid != static_cast<std::uint32_t>(getpid()) || one.blocks != kBlocks || one.ticket <= seen) continue;
      seen = one.ticket;
      __atomic_store_n(flags + number, 1, __ATOMIC_RELEASE);
      return -one.urgency;
    }
  }
}

std::string levels(const TableReader& table, unsigned kernels) {
  std::string line;
  for (unsigned i = 0; i < kernels; ++i) line += (i > 0 ? " " : "") + std::to_string(next_level(table, i));
  DRIVER_CHECK(cuCtxSynchronize());
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int launched = argc > 2 ? std::atoi(argv[2]) : 0;
  const int* const other = argc > 2 ? &launched : nullptr;
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  kernel = load_kernel(kWaitForPtx, "wait_for");
  void* words = nullptr;
  DRIVER_CHECK(cuMemHostAlloc(&words, kMostKernels * sizeof *flags, CU_MEMHOSTALLOC_DEVICEMAP));
  flags = static_cast<unsigned*>(words);
  CUgraph graph = capture(std::atoi(argv[1]), other);
  CUgraphExec exec = nullptr;
  cuuint64_t reported = 0;
  DRIVER_CHECK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
  DRIVER_CHECK(cuGraphExecGetFlags(exec, &reported));
  const auto table = TableReader::open(std::getenv("SOFTGPU_TABLE"));
  if (table.has_error()) return 1;
  std::cout << "ready " << reported << std::endl;
  std::string command;
  int priority = 0;
  while (std::cin >> command >> priority) {
    for (unsigned i = 0; i < kMostKernels; ++i) flags[i] = 0;
    std::string answer = "no such command";
    if (command == "graph") {
      DRIVER_CHECK(cuGraphLaunch(exec, stream_of(priority)));
      answer = levels(**table, other ? 2 : 1);
    } else if (command == "plain") {
      launch(0, stream_of(priority), nullptr);
      answer = levels(**table, 1);
    } else if (command == "again") {
      CUgraphExecUpdateResultInfo info{};
      CUgraph changed = capture(priority, other);
      answer = std::to_string(cuGraphExecUpdate(exec, changed, &info));
      DRIVER_CHECK(cuGraphDestroy(changed));
    }
    std::cout << answer << std::endl;
  }
  DRIVER_CHECK(cuGraphExecDestroy(exec));
  DRIVER_CHECK(cuGraphDestroy(graph));
  return 0;
}

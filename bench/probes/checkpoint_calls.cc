// Which calls of the driver go on while the memory of the process is on the host (cuCheckpointProcessCheckpoint), and
// what becomes of them. One function each time, since the process may die:
//   g++ -std=c++20 -I$CUDA/include checkpoint_calls.cc -lcuda -o calls; for i in $(seq 0 32); do ./calls $i; done
#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kAway{100};
constexpr std::chrono::microseconds kBetweenCalls{100};
constexpr char kPtx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }";

CUcontext context;
CUstream stream;
CUevent first, second;
CUdeviceptr memory;
void* host;
CUmodule module;
CUfunction kernel;
CUgraph graph;
CUgraphExec executable;
CUmemoryPool pool;

void prepare() {
  CUdevice device = 0;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&first, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&second, CU_EVENT_DEFAULT));
  CHECK(cuEventRecord(first, stream));
  CHECK(cuEventRecord(second, stream));
  CHECK(cuMemAlloc(&memory, 1 << 20));
  CHECK(cuMemHostAlloc(&host, 4096, 0));
  CHECK(cuModuleLoadData(&module, kPtx));
  CHECK(cuModuleGetFunction(&kernel, module, "k"));
  CHECK(cuGraphCreate(&graph, 0));
  CHECK(cuGraphInstantiate(&executable, graph, 0));
  CHECK(cuDeviceGetDefaultMemPool(&pool, device));
  CHECK(cuStreamSynchronize(stream));
}

template <class Make, class Free>
int made(Make make, Free free) {
  const int result = make();
  if (result == 0) free();
  return result;
}

using Call = std::function<int()>;
const std::vector<std::pair<const char*, Call>> kCalls = {
    {"cuStreamQuery", [] { return cuStreamQuery(stream); }},
    {"cuEventQuery", [] { return cuEventQuery(first); }},
    {"cuEventSynchronize", [] { return cuEventSynchronize(first); }},
    {"cuStreamSynchronize", [] { return cuStreamSynchronize(stream); }},
    {"cuCtxSynchronize", [] { return cuCtxSynchronize(); }},
    {"cuEventElapsedTime",
     [] {
       float ms = 0;
       return cuEventElapsedTime(&ms, first, second);
     }},
    {"cuMemGetInfo",
     [] {
       std::size_t free = 0, total = 0;
       return cuMemGetInfo(&free, &total);
     }},
    {"cuCtxGetCurrent",
     [] {
       CUcontext current = nullptr;
       return cuCtxGetCurrent(&current);
     }},
    {"cuCtxSetCurrent", [] { return cuCtxSetCurrent(context); }},
    {"cuMemcpyDtoHAsync", [] { return cuMemcpyDtoHAsync(host, memory, 64, stream); }},
    {"cuMemcpyDtoH", [] { return cuMemcpyDtoH(host, memory, 64); }},
    {"cuMemAlloc",
     [] {
       CUdeviceptr more = 0;
       return made([&] { return cuMemAlloc(&more, 4096); }, [&] { cuMemFree(more); });
     }},
    {"cuMemAllocAsync",
     [] {
       CUdeviceptr more = 0;
       return made([&] { return cuMemAllocAsync(&more, 64, stream); }, [&] { cuMemFreeAsync(more, stream); });
     }},
    {"cuMemHostAlloc",
     [] {
       void* more = nullptr;
       return made([&] { return cuMemHostAlloc(&more, 4096, 0); }, [&] { cuMemFreeHost(more); });
     }},
    {"cuMemsetD8Async", [] { return cuMemsetD8Async(memory, 0, 64, stream); }},
    {"cuEventRecord", [] { return cuEventRecord(first, stream); }},
    {"cuEventCreate",
     [] {
       CUevent more = nullptr;
       return made([&] { return cuEventCreate(&more, 0); }, [&] { cuEventDestroy(more); });
     }},
    {"cuStreamCreate",
     [] {
       CUstream more = nullptr;
       return made([&] { return cuStreamCreate(&more, CU_STREAM_NON_BLOCKING); }, [&] { cuStreamDestroy(more); });
     }},
    {"cuStreamWaitEvent", [] { return cuStreamWaitEvent(stream, first, 0); }},
    {"cuStreamIsCapturing",
     [] {
       CUstreamCaptureStatus status;
       return cuStreamIsCapturing(stream, &status);
     }},
    {"cuStreamGetPriority",
     [] {
       int priority = 0;
       return cuStreamGetPriority(stream, &priority);
     }},
    {"cuLaunchKernel", [] { return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr); }},
    {"cuGraphLaunch", [] { return cuGraphLaunch(executable, stream); }},
    {"cuModuleLoadData",
     [] {
       CUmodule more = nullptr;
       return made([&] { return cuModuleLoadData(&more, kPtx); }, [&] { cuModuleUnload(more); });
     }},
    {"cuFuncGetAttribute",
     [] {
       int registers = 0;
       return cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel);
     }},
    {"cuPointerGetAttribute",
     [] {
       unsigned type = 0;
       return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);
     }},
    {"cuMemGetAddressRange",
     [] {
       CUdeviceptr base = 0;
       std::size_t size = 0;
       return cuMemGetAddressRange(&base, &size, memory);
     }},
    {"cuMemPoolTrimTo", [] { return cuMemPoolTrimTo(pool, 0); }},
    {"(a read of pinned memory)", [] { return *static_cast<volatile int*>(host) == 1 ? -1 : 0; }},
};

double ms_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = static_cast<std::size_t>(argc == 2 ? std::atoi(argv[1]) : -1);
  if (number >= kCalls.size()) return 9;
  prepare();
  const auto& [name, call] = kCalls[number];
  std::atomic<long> count{0};
  std::atomic<int> last{0};
  std::thread([&, &call = call] {
    cuCtxSetCurrent(context);
    for (;; ++count) {
      last = call();
      std::this_thread::sleep_for(kBetweenCalls);
    }
  }).detach();
  while (count == 0) std::this_thread::sleep_for(kBetweenCalls);
  std::printf("%-26s ", name);
  std::fflush(stdout);
  CUcheckpointLockArgs within{};
  within.timeoutMs = 1000;
  CHECK(cuCheckpointProcessLock(getpid(), &within));
  Clock::time_point began = Clock::now();
  CHECK(cuCheckpointProcessCheckpoint(getpid(), nullptr));
  std::printf("checkpoint %.0f ms, ", ms_since(began));
  const long before = count;
  std::this_thread::sleep_for(kAway);
  std::printf("%ld calls while away, the last with %d, ", count - before, last.load());
  began = Clock::now();
  CHECK(cuCheckpointProcessRestore(getpid(), nullptr));
  std::printf("restore %.0f ms\n", ms_since(began));
  CHECK(cuCheckpointProcessUnlock(getpid(), nullptr));
  std::fflush(stdout);
  _exit(0);
}

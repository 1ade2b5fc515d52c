// Makes each driver call that programs make in a loop, as they do: one after the other, with much else done in between.
// count.py runs it under callgrind, which counts in the functions measured_* alone, and writes what it counted at each
// call of end_of_case().
//
// Between two calls, code and data of as many cache lines as the first level holds are used. So the cache misses that
// callgrind simulates are the lines that a call needs: in a program of some size they are not there any more.
#include <cuda.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kCalls = 256, kWarmUps = 128;
/// As many as a small network has.
constexpr int kKernels = 64;
constexpr std::size_t kLine = 64, kLines = 1024;  // of code and of data: twice what the caches of count.py hold

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, result);
  std::_Exit(1);
}

[[gnu::noinline]] void use_much_code() {
#if defined(__x86_64__)
  asm volatile(
      ".rept 1024\n"
      "  jmp 1f\n"
      "  .p2align 6\n"
      "1:\n"
      ".endr\n");
#endif
}

[[gnu::noinline]] void use_much_data() {
  alignas(kLine) static volatile char lines[kLine * kLines];
  for (std::size_t i = 0; i < kLines; ++i) static_cast<void>(lines[i * kLine]);
}

struct State {
  std::array<CUfunction, kKernels> kernels{};
  CUcontext context = nullptr;
  CUstream stream = nullptr;  // not ordered with the default stream
  CUevent event = nullptr;
  CUgraphExec graph = nullptr;
  CUdeviceptr memory = 0, other = 0;
  void* host = nullptr;
  std::vector<CUdeviceptr> allocated;
  CUlaunchAttribute attribute{};
  // What calls answer.
  CUcontext current = nullptr;
  CUdevice device = 0;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  int number = 0;
  std::atomic<bool>* busy = nullptr;  // null_device.cc
} g;

void* g_no_parameters[] = {nullptr};

CUfunction kernel(int i) {
  return g.kernels[static_cast<std::size_t>(i) % kKernels];
}

CUresult launch_ex(int i, CUlaunchAttribute* attributes, unsigned count) {
  const CUlaunchConfig config{.gridDimX = 8,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = 32,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .sharedMemBytes = 0,
                              .hStream = nullptr,
                              .attrs = attributes,
                              .numAttrs = count};
  return cuLaunchKernelEx(&config, kernel(i), g_no_parameters, nullptr);
}

/// A burst of one launch.
CUresult launch_and_wait(int i) {
  check(cuLaunchKernel(kernel(i), 8, 1, 1, 32, 1, 1, 0, nullptr, g_no_parameters, nullptr), "cuLaunchKernel");
  return cuStreamSynchronize(nullptr);
}

/// One that ends by a wait after which the driver is asked.
CUresult launch_and_event(int i) {
  check(cuLaunchKernel(kernel(i), 8, 1, 1, 32, 1, 1, 0, nullptr, g_no_parameters, nullptr), "cuLaunchKernel");
  return cuEventSynchronize(g.event);
}

CUresult copy_and_wait() {
  check(cuMemcpyDtoHAsync(g.host, g.memory, 64, nullptr), "cuMemcpyDtoHAsync");
  return cuStreamSynchronize(nullptr);
}

std::string ptx() {
  std::string text = ".version 6.4\n.target sm_75\n.address_size 64\n";
  for (int i = 0; i < kKernels; ++i) text += ".visible .entry kernel" + std::to_string(i) + "()\n{\n  ret;\n}\n";
  return text;
}

void prepare() {
  g.busy = static_cast<std::atomic<bool>*>(dlsym(RTLD_DEFAULT, "null_device_busy"));
  if (!g.busy) std::exit(2);
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&g.context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(g.context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  check(cuModuleLoadData(&module, ptx().c_str()), "cuModuleLoadData");
  for (int i = 0; i < kKernels; ++i) {
    check(cuModuleGetFunction(&g.kernels[static_cast<std::size_t>(i)], module, ("kernel" + std::to_string(i)).c_str()),
          "cuModuleGetFunction");
  }
  check(cuStreamCreate(&g.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuEventCreate(&g.event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  check(cuMemAlloc(&g.memory, 4096), "cuMemAlloc");
  check(cuMemAlloc(&g.other, 4096), "cuMemAlloc");
  check(cuMemHostAlloc(&g.host, 4096, 0), "cuMemHostAlloc");
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUDA_KERNEL_NODE_PARAMS node_parameters{};
  node_parameters.func = g.kernels[0];
  node_parameters.gridDimX = 8;
  node_parameters.gridDimY = node_parameters.gridDimZ = 1;
  node_parameters.blockDimX = 32;
  node_parameters.blockDimY = node_parameters.blockDimZ = 1;
  node_parameters.kernelParams = g_no_parameters;
  check(cuGraphAddKernelNode(&node, graph, nullptr, 0, &node_parameters), "cuGraphAddKernelNode");
  check(cuGraphInstantiate(&g.graph, graph, 0), "cuGraphInstantiate");
  g.allocated.resize(kCalls);
  // As cuBLAS and cuDNN do.
  g.attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  g.attribute.value.programmaticStreamSerializationAllowed = 1;
}

}  // namespace

/// Where callgrind writes what it counted.
extern "C" [[gnu::noinline]] void end_of_case() {
  asm volatile("");
}

#define CASE(name, call)                                     \
  [[gnu::noinline]] void call_##name(int i) {                \
    static_cast<void>(i);                                    \
    check(call, #name);                                      \
  }                                                          \
  extern "C" [[gnu::noinline]] void measured_##name(int i) { \
    call_##name(i);                                          \
    asm volatile("");                                        \
  }
#include "cases.h"
#undef CASE

int main(int count, char** arguments) {
  prepare();
  end_of_case();  // what the start did is no case
  const auto wanted = [&](const char* name) {
    for (int i = 1; i < count; ++i)
      if (std::strcmp(arguments[i], name) == 0) return true;
    return count == 1;
  };
  const auto run = [&](const char* name, void (*call)(int), void (*measured)(int)) {
    if (!wanted(name)) return;
    // What follows a launch into the default stream, with nothing in the other.
    check(cuStreamSynchronize(g.stream), "cuStreamSynchronize");
    call_cuLaunchKernel(0);
    *g.busy = std::strcmp(name, "cuGraphLaunch") != 0;  // the software GPU runs it, and its workers are seen to end
    for (int i = 0; i < kWarmUps; ++i) call(i);
    for (int i = 0; i < kCalls; ++i) {
      use_much_code();
      use_much_data();
      measured(i);
    }
    *g.busy = false;
    end_of_case();
  };
#define CASE(name, call) run(#name, &call_##name, &measured_##name);
#include "cases.h"
#undef CASE
  return 0;
}

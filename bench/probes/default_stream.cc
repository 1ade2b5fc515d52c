// What does a priority cost that launches carry, because their stream takes none?
//   g++ -O1 default_stream.cc -o default_stream -I/usr/local/cuda/include -lcuda; default_stream [TURNS]
// Prints, for each kind of stream, whether the driver sets a priority on it. Then the time of kernels in a chain, in
// microseconds each: by the CPU for the launch calls, by the GPU from the first to the last. Median of nine chains.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

static const char* kText = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry spin(.param .u32 turns) {
  .reg .pred %p; .reg .b32 %r, %n;
  ld.param.u32 %n, [turns];
  mov.u32 %r, 0;
again:
  add.u32 %r, %r, 1;
  setp.lt.u32 %p, %r, %n;
  @%p bra again;
  ret;
}
)";
#define CK(x)                                                                 \
  do {                                                                        \
    if (const CUresult e = (x)) std::printf("%s: %d\n", #x, e), std::exit(1); \
  } while (0)

namespace {

constexpr int kChain = 1000, kChains = 9;
constexpr int kNone = 1;  // no attribute of the launch

CUfunction spin;
unsigned turns = 500;  // of the loop of a kernel: about 2 us

struct Times {
  double cpu_us, gpu_us;
};

// Launches a chain; each launch carries `priority`, unless that is kNone.
Times chain(CUstream stream, int priority) {
  CUevent before, behind;
  CK(cuEventCreate(&before, 0));
  CK(cuEventCreate(&behind, 0));
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attribute.value.priority = priority;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = priority == kNone ? 0 : 1;
  void* params[] = {&turns};
  CK(cuCtxSynchronize());
  CK(cuEventRecord(before, stream));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kChain; ++i) CK(cuLaunchKernelEx(&config, spin, params, nullptr));
  const std::chrono::duration<double, std::micro> cpu = std::chrono::steady_clock::now() - start;
  CK(cuEventRecord(behind, stream));
  CK(cuCtxSynchronize());
  float ms = 0;
  CK(cuEventElapsedTime(&ms, before, behind));
  CK(cuEventDestroy(before));
  CK(cuEventDestroy(behind));
  return {cpu.count() / kChain, 1000.0 * ms / kChain};
}

void row(const char* name, CUstream stream, int priority) {
  std::vector<double> cpu, gpu;
  for (int i = 0; i < kChains; ++i) {
    const Times times = chain(stream, priority);
    cpu.push_back(times.cpu_us);
    gpu.push_back(times.gpu_us);
  }
  std::sort(cpu.begin(), cpu.end());
  std::sort(gpu.begin(), gpu.end());
  std::printf("%-44s CPU %6.2f   GPU %6.2f\n", name, cpu[kChains / 2], gpu[kChains / 2]);
}

int can_set(CUstream stream, int priority) {
  CUstreamAttrValue value{};
  value.priority = priority;
  return cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) turns = std::strtoul(argv[1], nullptr, 10);
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CK(cuInit(0));
  CK(cuDeviceGet(&device, 0));
  CK(cuDevicePrimaryCtxRetain(&context, device));
  CK(cuCtxSetCurrent(context));
  CK(cuModuleLoadData(&module, kText));
  CK(cuModuleGetFunction(&spin, module, "spin"));
  CUstream plain, changed, made;
  CK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  CK(cuStreamCreate(&changed, CU_STREAM_NON_BLOCKING));
  CK(cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, -2));
  row("default stream", nullptr, kNone);
  row("default stream, launches of -2", nullptr, -2);
  row("a stream of 0", plain, kNone);
  row("a stream of 0, launches of -2", plain, -2);
  row("a stream made with -2", made, kNone);
  std::printf("setting -2: default stream %d, legacy %d, per thread %d, a stream %d\n", can_set(nullptr, -2),
              can_set(CU_STREAM_LEGACY, -2), can_set(CU_STREAM_PER_THREAD, -2), can_set(changed, -2));
  row("default stream, after it was set", nullptr, kNone);
  row("a stream that was set to -2", changed, kNone);
  return 0;
}

// Uses as many functions of the driver as it can, but for graphs: calls WAY FATBIN SCRATCH. Every answer is looked at
// and every result compared: "calls: R results, 0 wrong" and exit status 0, 1 with a line on stderr when the driver
// answered with an error, 3 when a result was wrong. WAY: "code" (memory, streams, modules and libraries) or "contexts"
// (made and destroyed); FATBIN: a file with a kernel in it
// (../cuda/vector_add.cu); SCRATCH: a file that may be written.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../driver/driver.h"
#include "../driver/graph_kernels.h"

namespace {

constexpr unsigned kThreads = 64;
constexpr unsigned kBlocks = 100;
constexpr unsigned kWords = kThreads * kBlocks;
constexpr std::size_t kBytes = kWords * sizeof(unsigned);
constexpr unsigned kIterations = 6;
constexpr unsigned kRounds = 22;

unsigned results = 0, wrong = 0;

void expect(const unsigned* words, unsigned seed) {
  ++results;
  for (unsigned i = 0; i < kWords; ++i) {
    if (words[i] == scrambled(seed + i, kIterations)) continue;
    ++wrong;
    return;
  }
}

/// Launches scramble in each of the ways there are, by turns.
void launch(CUfunction kernel, unsigned way, CUstream stream, CUdeviceptr out, unsigned seed) {
  unsigned iterations = kIterations;
  void* parameters[] = {&out, &seed, &iterations};
  if (way % 3 == 0) {
    DRIVER_CHECK(cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
  } else if (way % 3 == 1) {
    CUlaunchConfig config{};
    config.gridDimX = kBlocks;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = kThreads;
    config.hStream = stream;
    CUlaunchAttribute priority{};
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    config.attrs = &priority;
    config.numAttrs = 1;
    DRIVER_CHECK(cuLaunchKernelEx(&config, kernel, parameters, nullptr));
  } else {
    DRIVER_CHECK(cuLaunchCooperativeKernel(kernel, 4, 1, 1, kThreads, 1, 1, 0, stream, parameters));
    DRIVER_CHECK(cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
  }
}

void run_and_compare(CUfunction kernel, unsigned seed) {
  CUdeviceptr out = 0;
  std::vector<unsigned> host(kWords);
  DRIVER_CHECK(cuMemAlloc(&out, kBytes));
  launch(kernel, 0, nullptr, out, seed);
  DRIVER_CHECK(cuMemcpyDtoH(host.data(), out, kBytes));
  DRIVER_CHECK(cuMemFree(out));
  expect(host.data(), seed);
}

/// Adds `add` to each word, as often as wanted, and scrambles it: in a form of its own only, whose blocks could wait
/// for *flag.
void step(CUfunction opaque, unsigned times, CUstream stream, CUdeviceptr words, unsigned add, CUdeviceptr flag) {
  unsigned iterations = kIterations;
  void* parameters[] = {&words, &add, &iterations, &flag};
  for (; times > 0; --times)
    DRIVER_CHECK(cuLaunchKernel(opaque, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}

void expect_stepped(const std::vector<unsigned>& words, unsigned value, unsigned times, unsigned add) {
  for (; times > 0; --times) value = scrambled(value + add, kIterations);
  ++results;
  for (const unsigned word : words) {
    if (word == value) continue;
    ++wrong;
    return;
  }
}

/// Memory of all kinds, streams and events, and launches between them.
void rounds(CUfunction kernel, CUfunction opaque) {
  std::vector<unsigned> registered(kWords);
  CUdeviceptr flag = 0;
  DRIVER_CHECK(cuMemAlloc(&flag, sizeof(unsigned)));
  DRIVER_CHECK(cuMemsetD32(flag, 1, 1));
  for (unsigned round = 0; round < kRounds; ++round) {
    CUstream first = nullptr, second = nullptr;
    CUevent event = nullptr;
    CUdeviceptr plain = 0, pitched = 0, managed = 0, ordered = 0;
    void* pinned = nullptr;
    std::size_t pitch = 0, free = 0, total = 0;
    DRIVER_CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    DRIVER_CHECK(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -5));
    DRIVER_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    DRIVER_CHECK(cuMemAlloc(&plain, kBytes));
    DRIVER_CHECK(cuMemAllocPitch(&pitched, &pitch, 100, 10, 4));
    DRIVER_CHECK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    DRIVER_CHECK(cuMemAllocAsync(&ordered, 4096, second));
    DRIVER_CHECK(cuMemHostAlloc(&pinned, kBytes, 0));
    DRIVER_CHECK(cuMemHostRegister(registered.data(), kBytes, 0));
    DRIVER_CHECK(cuMemGetInfo(&free, &total));

    launch(kernel, round, first, plain, round * 100);
    DRIVER_CHECK(cuEventRecord(event, first));
    DRIVER_CHECK(cuStreamWaitEvent(second, event, 0));
    DRIVER_CHECK(cuMemcpyDtoHAsync(pinned, plain, kBytes, second));
    DRIVER_CHECK(cuStreamSynchronize(second));
    expect(static_cast<const unsigned*>(pinned), round * 100);

    // More of them in the first round than a program may be ahead of the GPU.
    const unsigned times = round == 0 ? 100 : 1;
    DRIVER_CHECK(cuMemsetD32Async(plain, round, kWords, first));
    step(opaque, times, first, plain, 7, flag);
    DRIVER_CHECK(cuMemcpyDtoHAsync(registered.data(), plain, kBytes, first));
    DRIVER_CHECK(cuStreamSynchronize(first));
    expect_stepped(registered, round, times, 7);

    DRIVER_CHECK(cuMemHostUnregister(registered.data()));
    DRIVER_CHECK(cuMemFreeHost(pinned));
    DRIVER_CHECK(cuMemFreeAsync(ordered, second));
    for (const CUdeviceptr one : {plain, pitched, managed}) DRIVER_CHECK(cuMemFree(one));
    DRIVER_CHECK(cuEventDestroy(event));
    for (const CUstream one : {first, second}) DRIVER_CHECK(cuStreamDestroy(one));
  }
  DRIVER_CHECK(cuMemFree(flag));
}

std::string contents(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Modules come from memory, from a file, as a fatbin and out of the linker.
void modules(const char* fatbin, const char* scratch) {
  const std::string container = contents(fatbin);
  CUjit_option limit = CU_JIT_MAX_REGISTERS;
  for (unsigned way = 0; way < 6; ++way) {
    CUmodule module = nullptr;
    CUlinkState link = nullptr;
    void* cubin = nullptr;
    void* value = reinterpret_cast<void*>(std::uintptr_t{40 + way});
    std::size_t size = 0;
    if (way == 0) DRIVER_CHECK(cuModuleLoadData(&module, kScramblePtx));
    if (way == 1) DRIVER_CHECK(cuModuleLoad(&module, scratch));
    if (way == 2) DRIVER_CHECK(cuModuleLoadFatBinary(&module, container.data()));
    if (way >= 3) {
      DRIVER_CHECK(cuLinkCreate(0, nullptr, nullptr, &link));
      DRIVER_CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kScramblePtx), sizeof kScramblePtx,
                                 "scramble", 0, nullptr, nullptr));
      DRIVER_CHECK(cuLinkComplete(link, &cubin, &size));
      DRIVER_CHECK(cuModuleLoadDataEx(&module, cubin, 1, &limit, &value));
      DRIVER_CHECK(cuLinkDestroy(link));
    }
    unsigned count = 0;
    CUfunction function = nullptr;
    DRIVER_CHECK(cuModuleGetFunctionCount(&count, module));
    if (count != 1) ++wrong;  // whatever else stands there is the library's
    DRIVER_CHECK(cuModuleEnumerateFunctions(&function, 1, module));
    if (way != 2) {
      DRIVER_CHECK(cuModuleGetFunction(&function, module, "scramble"));
      DRIVER_CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
      DRIVER_CHECK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_L1));
      run_and_compare(function, way);
    }
    DRIVER_CHECK(cuModuleUnload(module));
  }
}

void libraries(const char* scratch, CUdevice device) {
  for (unsigned way = 0; way < 6; ++way) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    unsigned count = 0;
    if (way % 2 == 0) DRIVER_CHECK(cuLibraryLoadData(&library, kScramblePtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    if (way % 2 == 1) DRIVER_CHECK(cuLibraryLoadFromFile(&library, scratch, nullptr, nullptr, 0, nullptr, nullptr, 0));
    DRIVER_CHECK(cuLibraryGetKernelCount(&count, library));
    if (count != 1) ++wrong;
    DRIVER_CHECK(cuLibraryEnumerateKernels(&kernel, 1, library));
    DRIVER_CHECK(cuLibraryGetKernel(&kernel, library, "scramble"));
    DRIVER_CHECK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, kernel, device));
    DRIVER_CHECK(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, device));
    if (way < 4) run_and_compare(reinterpret_cast<CUfunction>(kernel), 1000 + way);
    DRIVER_CHECK(cuLibraryGetModule(&module, library));
    DRIVER_CHECK(cuKernelGetFunction(&function, kernel));
    run_and_compare(function, 2000 + way);
    DRIVER_CHECK(cuLibraryUnload(library));
  }
}

void other_contexts(CUdevice device) {
  for (unsigned round = 0; round < 6; ++round) {
    CUcontext context = nullptr;
    DRIVER_CHECK(cuCtxCreate(&context, nullptr, 0, device));
    run_and_compare(load_kernel(kScramblePtx, "scramble"), 3000 + round);
    DRIVER_CHECK(cuCtxDestroy(context));
    DRIVER_CHECK(cuDevicePrimaryCtxRetain(&context, device));
    DRIVER_CHECK(cuCtxSetCurrent(context));
    run_and_compare(load_kernel(kScramblePtx, "scramble"), 4000 + round);
    DRIVER_CHECK(round % 2 == 0 ? cuDevicePrimaryCtxReset(device) : cuDevicePrimaryCtxRelease(device));
    if (round % 2 == 0) DRIVER_CHECK(cuDevicePrimaryCtxRelease(device));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string way = argv[1];
  std::ofstream(argv[3]) << kScramblePtx;
  DRIVER_CHECK(cuInit(0));
  CUdevice device = 0;
  DRIVER_CHECK(cuDeviceGet(&device, 0));
  if (way == "contexts") {
    other_contexts(device);
  } else {
    use_first_gpu();
    rounds(load_kernel(kScramblePtx, "scramble"), load_kernel(kGraphPtx, "wait_and_step"));
    modules(argv[2], argv[3]);
    libraries(argv[3], device);
  }
  std::printf("calls: %u results, %u wrong\n", results, wrong);
  return wrong == 0 ? 0 : 3;
}

// How many hardware queues does a program have? A kernel spins in one stream, with another one behind it: which other
// streams still get on? Those that share the queue do not. g++ -O1 queues.cc -o queues -I/usr/local/cuda/include -lcuda
//   QUEUES_IN_INIT=N: asks for N in CUDA_DEVICE_MAX_CONNECTIONS while cuInit runs alone. Does the driver read it there?
//   queues [SECONDS]   prints, of streams of normal and of the highest priority, and of a green context of all SMs, how
//   many get
//                      on; then stays so long, with its streams, for others to be measured beside it
#include <cuda.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static const char* kText = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 flag) {
  .reg .pred %p; .reg .b32 %r; .reg .b64 %d;
  ld.param.u64 %d, [flag];
again:
  ld.volatile.global.u32 %r, [%d];
  setp.eq.u32 %p, %r, 0;
  @%p bra again;
  ret;
}
.visible .entry say(.param .u64 flag) {
  .reg .b32 %r; .reg .b64 %d;
  ld.param.u64 %d, [flag];
  mov.u32 %r, 1;
  st.volatile.global.u32 [%d], %r;
  ret;
}
)";
#define CK(x)                         \
  do {                                \
    CUresult e = (x);                 \
    if (e) {                          \
      std::printf("%s: %d\n", #x, e); \
      std::fflush(stdout);            \
      _exit(1);                       \
    }                                 \
  } while (0)

int main(int argc, char** argv) {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction spin, say;
  const char* in_init = std::getenv("QUEUES_IN_INIT");
  if (in_init) setenv("CUDA_DEVICE_MAX_CONNECTIONS", in_init, 1);
  CK(cuInit(0));
  if (in_init) unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  CK(cuDeviceGet(&device, 0));
  CK(cuDevicePrimaryCtxRetain(&context, device));
  CK(cuCtxSetCurrent(context));
  CK(cuModuleLoadData(&module, kText));
  CK(cuModuleGetFunction(&spin, module, "spin"));
  CK(cuModuleGetFunction(&say, module, "say"));
  volatile unsigned* words;
  CUdeviceptr at;
  CK(cuMemHostAlloc((void**)&words, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  CK(cuMemHostGetDevicePointer(&at, (void*)words, 0));
  for (int i = 0; i < 1024; ++i) words[i] = 0;
  int least, greatest;
  CK(cuCtxGetStreamPriorityRange(&least, &greatest));
  std::vector<CUstream> streams;
  std::vector<int> kinds;
  const auto add = [&](int kind, CUstream s) {
    streams.push_back(s);
    kinds.push_back(kind);
  };
  CUstream program;
  CK(cuStreamCreate(&program, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 16; ++i) {
    CUstream s;
    CK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, 0));
    add(0, s);
  }
  for (int i = 0; i < 16; ++i) {
    CUstream s;
    CK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, greatest));
    add(1, s);
  }
  CUdevResource all{};
  CUdevResourceDesc desc;
  CUgreenCtx green = nullptr;
  CUresult g = cuCtxGetDevResource(context, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (!g) g = cuDevResourceGenerateDesc(&desc, &all, 1);
  if (!g) g = cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM);
  for (int i = 0; i < 8 && !g; ++i) {
    CUstream s;
    g = cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, i < 4 ? 0 : greatest);
    if (!g) add(2, s);
  }
  // so that nothing is set up later
  for (std::size_t i = 0; i < streams.size(); ++i) {
    CUdeviceptr a = at + 4 * (i + 1);
    void* p[] = {&a};
    CK(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, streams[i], p, nullptr));
  }
  CK(cuCtxSynchronize());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1024; ++i) words[i] = 0;
    // round 0: the program's stream alone; 1: a stream beside it that waits for an event behind it; 2: that, and one of
    // the highest priority
    CUevent behind;
    CK(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING));
    {
      CUdeviceptr a = at;
      void* p[] = {&a};
      CK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, program, p, nullptr));
    }
    CUdeviceptr last = at + 4000;
    void* lp[] = {&last};
    CK(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, program, lp, nullptr));
    CK(cuEventRecord(behind, program));
    std::vector<char> blocked(streams.size(), 0);
    if (round > 0)
      for (int k = 0; k < round; ++k) {
        int w = k == 0 ? 3 : 16 + 3;
        blocked[w] = 1;
        CK(cuStreamWaitEvent(streams[w], behind, 0));
        CK(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, streams[w], lp, nullptr));
      }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (blocked[i]) continue;
      CUdeviceptr a = at + 4 * (i + 1);
      void* p[] = {&a};
      CK(cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, streams[i], p, nullptr));
    }
    usleep(150000);
    int on[3] = {}, of[3] = {};
    char map[3][32] = {};
    for (std::size_t i = 0; i < streams.size(); ++i) {
      int k = kinds[i];
      map[k][of[k]] = blocked[i] ? 'b' : words[i + 1] ? '1' : '.';
      of[k]++;
      on[k] += words[i + 1] != 0;
    }
    std::printf("  blocked %d: normal %s  high %s  green %s (%d)\n", round, map[0], map[1], map[2], g);
    std::fflush(stdout);
    words[0] = 1;
    CK(cuCtxSynchronize());
  }
  if (argc > 1) sleep(atoi(argv[1]));
  _exit(0);
}

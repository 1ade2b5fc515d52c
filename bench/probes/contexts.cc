// Who has the GPU when, where contexts take turns? A kernel reads the GPU's clock all the time; where two readings lie
// far apart, another context ran in between. For isolation.sh. g++ -O1 contexts.cc -o contexts
// -I/usr/local/cuda/include -lcuda
//   contexts about                         the compute mode, whether the process is in MPS, and free memory with its
//                                          context
//   contexts watch SECONDS BLOCKS THREADS SHARED [LINGER]
//                                          runs such a kernel for so long, prints "FIRST LAST" (ns) of each time that
//                                          it ran without a stop, then stays so many seconds with nothing to run
//   contexts holds                         has a context; for each line of its input it prints the free memory in bytes
//   contexts fault KIND                    illegal, misaligned or trap: a kernel that does this; prints the
//                                          error
#include <cuda.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

namespace {

constexpr char kText[] = R"(
.version 6.3
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 room[];
// Runs until `end`. Thread 0 of block 0 writes pairs of readings between which there was a stop.
.visible .entry watch(.param .u64 end, .param .u64 gap, .param .u64 log, .param .u32 most) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %d<16>;
  ld.param.u64 %d1, [end];
  ld.param.u64 %d2, [gap];
  ld.param.u64 %d3, [log];
  ld.param.u32 %r1, [most];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  or.b32 %r4, %r2, %r3;
  setp.ne.u32 %p1, %r4, 0;
  mov.u32 %r5, 1;
  mov.u64 %d4, %globaltimer;
  @!%p1 st.global.u64 [%d3+8], %d4;
again:
  mov.u64 %d5, %globaltimer;
  @%p1 bra on;
  sub.u64 %d6, %d5, %d4;
  setp.lt.u64 %p2, %d6, %d2;
  @%p2 bra kept;
  setp.ge.u32 %p3, %r5, %r1;
  @%p3 bra kept;
  mul.wide.u32 %d7, %r5, 16;
  add.u64 %d8, %d3, %d7;
  st.global.u64 [%d8], %d4;
  st.global.u64 [%d8+8], %d5;
  add.u32 %r5, %r5, 1;
  cvt.u64.u32 %d9, %r5;
  st.global.u64 [%d3], %d9;
kept:
  mov.u64 %d4, %d5;
on:
  setp.lt.u64 %p2, %d5, %d1;
  @%p2 bra again;
  @%p1 bra over;
  mul.wide.u32 %d7, %r5, 16;
  add.u64 %d8, %d3, %d7;
  st.global.u64 [%d8], %d4;
over:
  ret;
}
.visible .entry now(.param .u64 word) {
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [word];
  mov.u64 %d2, %globaltimer;
  st.global.u64 [%d1], %d2;
  ret;
}
.visible .entry fault(.param .u64 place, .param .u32 kind) {
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [place];
  ld.param.u32 %r1, [kind];
  setp.eq.u32 %p1, %r1, 1;
  @%p1 trap;
  mov.u32 %r2, 7;
  st.global.u32 [%d1], %r2;
  ret;
}
)";

CUmodule begin() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, kText));
  return module;
}

CUfunction function(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  CHECK(cuModuleGetFunction(&found, module, name));
  return found;
}

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  CHECK(cuMemGetInfo(&free, &total));
  return free;
}

std::uint64_t gpu_now(CUmodule module) {
  CUdeviceptr word = 0;
  std::uint64_t ns = 0;
  CHECK(cuMemAlloc(&word, sizeof ns));
  void* parameters[] = {&word};
  CHECK(cuLaunchKernel(function(module, "now"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK(cuMemcpyDtoH(&ns, word, sizeof ns));
  CHECK(cuMemFree(word));
  return ns;
}

void about() {
  begin();
  int mode = -1, mps = -1;
  CHECK(cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0));
  cuDeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0);
  std::printf("compute_mode %d mps %d free %zu\n", mode, mps, free_memory());
}

void watch(double seconds, unsigned blocks, unsigned threads, unsigned shared, double linger) {
  constexpr std::uint32_t kMost = 1 << 20;
  // Shorter stops are the clock's own steps, and other blocks on the SM.
  std::uint64_t gap = 20'000;
  const CUmodule module = begin();
  const CUfunction kernel = function(module, "watch");
  CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)));
  CUdeviceptr log = 0;
  CHECK(cuMemAlloc(&log, 16ull * (kMost + 1)));
  CHECK(cuMemsetD8(log, 0, 16ull * (kMost + 1)));
  std::printf("ready\n");
  std::fflush(stdout);
  if (std::getchar() == EOF) return;  // so that several begin together
  std::uint64_t end = gpu_now(module) + static_cast<std::uint64_t>(seconds * 1e9);
  std::uint32_t most = kMost;
  void* parameters[] = {&end, &gap, &log, &most};
  CHECK(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, shared, nullptr, parameters, nullptr));
  CHECK(cuCtxSynchronize());
  std::vector<std::uint64_t> words(2 * (kMost + 1));
  CHECK(cuMemcpyDtoH(words.data(), log, words.size() * sizeof words[0]));
  const std::size_t stops = words[0] == 0 ? 1 : words[0];
  // Of each entry: the last reading before a stop, and the first after it.
  std::uint64_t first = words[1];
  for (std::size_t i = 1; i < stops; ++i) {
    std::printf("%llu %llu\n", static_cast<unsigned long long>(first), static_cast<unsigned long long>(words[2 * i]));
    first = words[2 * i + 1];
  }
  std::printf("%llu %llu\nend\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(words[2 * stops]));
  std::fflush(stdout);
  usleep(static_cast<unsigned>(linger * 1e6));
}

void fault(const std::string& kind) {
  const CUmodule module = begin();
  CUdeviceptr place = 0;
  CHECK(cuMemAlloc(&place, 64));
  if (kind == "illegal") place = 64;
  if (kind == "misaligned") place += 1;
  int trap = kind == "trap" ? 1 : 0;
  void* parameters[] = {&place, &trap};
  CHECK(cuLaunchKernel(function(module, "fault"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  std::printf("%s: error %d\n", kind.c_str(), static_cast<int>(cuCtxSynchronize()));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? std::atof(argv[i]) : 0.0; };
  if (what == "about")
    about();
  else if (what == "watch" && argc > 5)
    watch(number(2), static_cast<unsigned>(number(3)), static_cast<unsigned>(number(4)),
          static_cast<unsigned>(number(5)), number(6));
  else if (what == "holds") {
    begin();
    for (int c = 0; (c = std::getchar()) != EOF;)
      if (c == '\n') std::printf("%zu\n", free_memory()), std::fflush(stdout);
  } else if (what == "fault" && argc > 2)
    fault(argv[2]);
  else
    return 2;
  return 0;
}

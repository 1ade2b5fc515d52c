// Does the driver's linker hold up the rest of a program while it compiles, and does it need a current context? g++ -O1 -std=c++17 -pthread
// link.cc -o link -I/usr/local/cuda/include -lcuda
//   link [KERNELS]   compiles so many kernels (200) in a nice thread; prints for launch + synchronize, an allocation, and a load of a compiled
//                    module, each in the main thread: how often, median and longest, without and beside it; and how long it took. Then the same
//                    without a current context: only whether that works
#include <cuda.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#define CK(x) do { CUresult e = (x); if (e) { std::printf("%s: %d\n", #x, e); std::fflush(stdout); _exit(1); } } while (0)
using Clock = std::chrono::steady_clock;

static double us(Clock::time_point since) { return std::chrono::duration<double, std::micro>(Clock::now() - since).count(); }

static std::string text(int kernels) {
  // Another one each time: the driver keeps what it compiled.
  const auto salt = static_cast<unsigned>(Clock::now().time_since_epoch().count());
  std::string all = ".version 8.0\n.target sm_80\n.address_size 64\n";
  for (int k = 0; k < kernels; ++k) {
    all += ".visible .entry k" + std::to_string(k) + "(.param .u64 p) {\n.reg .b32 %r<3>; .reg .f32 %f<99>; .reg .b64 %d;\nld.param.u64 %d, [p];\n";
    for (int i = 0; i < 32; ++i) all += "ld.global.f32 %f" + std::to_string(i) + ", [%d+" + std::to_string(4 * i) + "];\n";
    for (int i = 0; i < 600; ++i) {
      all += "fma.rn.f32 %f" + std::to_string(i % 32) + ", %f" + std::to_string((i * 7 + k) % 32) + ", %f" + std::to_string((i * 5 + 1) % 32) + ", %f" +
             std::to_string((i + salt) % 32) + ";\n";
    }
    for (int i = 0; i < 32; ++i) all += "st.global.f32 [%d+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + ";\n";
    all += "ret;\n}\n";
  }
  return all;
}

static CUresult link(const std::string& ptx, std::string* out) {
  CUlinkState state;
  void* image;
  std::size_t size;
  CUjit_option options[] = {CU_JIT_TARGET};
  int major, minor;
  CK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  void* values[] = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(major * 10 + minor))};
  CUresult result = cuLinkCreate(1, options, values, &state);
  if (result) return result;
  result = cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1, "text", 0, nullptr, nullptr);
  if (!result) result = cuLinkComplete(state, &image, &size);
  if (!result && out) out->assign(static_cast<char*>(image), size);
  cuLinkDestroy(state);
  return result;
}

static void print(const char* when, const char* what, std::vector<double>& took) {
  std::sort(took.begin(), took.end());
  if (!took.empty()) std::printf("%-8s %-22s %6zu times, median %8.1f us, longest %10.1f us\n", when, what, took.size(), took[took.size() / 2], took.back());
}

int main(int argc, char** argv) {
  const int kernels = argc > 1 ? std::atoi(argv[1]) : 200;
  CUcontext context;
  CK(cuInit(0));
  std::printf("without a context: %d\n", link(text(1), nullptr));
  CK(cuDevicePrimaryCtxRetain(&context, 0));
  CK(cuCtxSetCurrent(context));
  std::string compiled;
  CK(link(text(1), &compiled));
  CUmodule module;
  CUfunction kernel;
  CUdeviceptr memory;
  CK(cuModuleLoadData(&module, compiled.data()));
  CK(cuModuleGetFunction(&kernel, module, "k0"));
  CK(cuMemAlloc(&memory, 4096));
  void* parameters[] = {&memory};

  std::atomic<bool> begun{false}, over{false};
  double took = 0;
  std::thread thread;
  for (const char* when : {"without", "beside"}) {
    if (when[0] == 'b') {
      thread = std::thread([&] {
        setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
        CK(cuCtxSetCurrent(context));
        const std::string ptx = text(kernels);
        begun = true;
        const auto begin = Clock::now();
        CK(link(ptx, nullptr));
        took = us(begin);
        over = true;
      });
      while (!begun) std::this_thread::yield();
    }
    std::vector<double> launches, allocations, loads;
    const auto begin = Clock::now();
    while (when[0] == 'b' ? !over.load() : us(begin) < 1e6) {
      auto at = Clock::now();
      CK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
      CK(cuCtxSynchronize());
      launches.push_back(us(at));
      at = Clock::now();
      CUdeviceptr more;
      CK(cuMemAlloc(&more, 1 << 20));
      allocations.push_back(us(at));
      CK(cuMemFree(more));
      at = Clock::now();
      CUmodule again;
      CK(cuModuleLoadData(&again, compiled.data()));
      loads.push_back(us(at));
      CK(cuModuleUnload(again));
    }
    print(when, "launch + synchronize", launches);
    print(when, "cuMemAlloc", allocations);
    print(when, "cuModuleLoadData", loads);
  }
  thread.join();
  std::printf("compiling took %.0f ms\n", took / 1e3);
}

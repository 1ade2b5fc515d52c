// compat: the driver opened by dlopen, its functions by dlsym and by cuGetProcAddress, closed and opened again
// builds: both shared
// soft: yes
#include <dlfcn.h>

#include "driver.h"

namespace {

void* library;

template <typename Function>
Function by_name(const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s\n", name);
    std::exit(2);
  }
  return reinterpret_cast<Function>(found);
}

template <typename Function>
Function by_driver(const char* name) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status;
  CHECK_ZERO(by_name<decltype(&cuGetProcAddress)>("cuGetProcAddress_v2")(name, &found, 12000,
                                                                         CU_GET_PROC_ADDRESS_DEFAULT, &status));
  CHECK_ZERO(status);
  return reinterpret_cast<Function>(found);
}

void compute(const char* name, decltype(&cuModuleLoadData) load, decltype(&cuLaunchKernel) launch) {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr data;
  CHECK_ZERO(by_name<decltype(&cuInit)>("cuInit")(0));
  CHECK_ZERO(by_name<decltype(&cuDeviceGet)>("cuDeviceGet")(&device, 0));
  CHECK_ZERO(by_name<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, device));
  CHECK_ZERO(by_name<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context));
  CHECK_ZERO(load(&module, kWorkPtx));
  CHECK_ZERO(by_name<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&function, module, "work"));
  unsigned count = 4096, depth = 20;
  std::vector<unsigned> host(count);
  for (unsigned i = 0; i < count; ++i) host[i] = i;
  CHECK_ZERO(by_name<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&data, count * sizeof(unsigned)));
  CHECK_ZERO(by_name<decltype(&cuMemcpyHtoD)>("cuMemcpyHtoD_v2")(data, host.data(), count * sizeof(unsigned)));
  void* arguments[] = {&data, &count, &depth};
  for (int i = 0; i < 20; ++i)
    CHECK_ZERO(launch(function, count / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK_ZERO(by_name<decltype(&cuCtxSynchronize)>("cuCtxSynchronize")());
  CHECK_ZERO(by_name<decltype(&cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(host.data(), data, count * sizeof(unsigned)));
  int wrong = 0;
  for (unsigned i = 0; i < count; ++i) {
    unsigned x = i;
    for (unsigned done = 0; done < 20 * depth; ++done) x = turn(x);
    wrong += host[i] != x;
  }
  std::printf("%s %s\n", name, wrong == 0 ? "right" : "WRONG");
  CHECK_ZERO(by_name<decltype(&cuMemFree)>("cuMemFree_v2")(data));
  CHECK_ZERO(by_name<decltype(&cuModuleUnload)>("cuModuleUnload")(module));
  CHECK_ZERO(by_name<decltype(&cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease_v2")(device));
}

}  // namespace

int main() {
  for (int time = 0; time < 2; ++time) {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 2;
    compute("by name", by_name<decltype(&cuModuleLoadData)>("cuModuleLoadData"),
            by_name<decltype(&cuLaunchKernel)>("cuLaunchKernel"));
    CHECK_ZERO(by_name<decltype(&cuInit)>("cuInit")(0));
    compute("by the driver", by_driver<decltype(&cuModuleLoadData)>("cuModuleLoadData"),
            by_driver<decltype(&cuLaunchKernel)>("cuLaunchKernel"));
    std::printf("closed %d\n", dlclose(library));
  }
  return 0;
}

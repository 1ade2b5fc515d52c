// compat: a module and a library loaded, run and unloaded fifty times, with work of another module in flight
// libs: cuda
// builds: both shared
// soft: yes
#include "driver.h"

int main() {
  use_device();
  const Amount all = amount();
  const Amount each{all.count / 16, all.depth, 2};
  CUmodule lasting;
  CUfunction background;
  CHECK_DRIVER(cuModuleLoadData(&lasting, kWorkPtx));
  CHECK_DRIVER(cuModuleGetFunction(&background, lasting, "work"));
  CUstream stream;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr data = numbers(all.count);
  unsigned count = all.count, depth = all.depth;
  void* arguments[] = {&data, &count, &depth};

  constexpr unsigned kTimes = 50;
  for (unsigned time = 0; time < kTimes; ++time) {
    CHECK_DRIVER(cuLaunchKernel(background, (count + 255) / 256, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
    if (time % 2 == 0) {
      CUmodule module;
      CUfunction work;
      CHECK_DRIVER(cuModuleLoadData(&module, kWorkPtx));
      CHECK_DRIVER(cuModuleGetFunction(&work, module, "work"));
      run_work("module", work, each);
      CHECK_DRIVER(cuModuleUnload(module));
    } else {
      CUlibrary library;
      CUkernel work;
      CHECK_DRIVER(cuLibraryLoadData(&library, kWorkPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
      CHECK_DRIVER(cuLibraryGetKernel(&work, library, "work"));
      run_work("library", reinterpret_cast<CUfunction>(work), each);
      CHECK_DRIVER(cuLibraryUnload(library));
    }
  }
  CHECK_DRIVER(cuStreamSynchronize(stream));
  std::vector<unsigned> got(count);
  CHECK_DRIVER(cuMemcpyDtoH(got.data(), data, count * sizeof(unsigned)));
  unsigned x = 5;
  for (unsigned done = 0; done < depth * kTimes; ++done) x = turn(x);
  std::printf("in flight %s\n", got[5] == x ? "right" : "WRONG");
  print_hash("in flight", got.data(), count * sizeof(unsigned));
  CHECK_DRIVER(cuModuleUnload(lasting));
  return 0;
}

// compat: programs that hardly use the GPU: they count devices, touch memory only, or make no call at all
// args: nothing
// args: count
// args: versions
// args: properties
// args: context
// args: memory
// args: driver_init
// libs: cuda
// soft: yes
#include <cuda.h>

#include <cstring>
#include <vector>

#include "check.h"

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "nothing";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  if (is("count")) {
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    std::printf("some devices: %s\n", count > 0 ? "yes" : "no");
  } else if (is("versions")) {
    int runtime = 0, driver = 0;
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDriverGetVersion(&driver));
    std::printf("runtime %d, driver %d\n", runtime, driver);
  } else if (is("properties")) {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::printf("%s %d.%d, warps of %d\n", properties.name, properties.major, properties.minor, properties.warpSize);
  } else if (is("context")) {
    CHECK(cudaFree(nullptr));
  } else if (is("memory")) {
    std::vector<unsigned char> host(1 << 20, 1);
    void* device = nullptr;
    CHECK(cudaMalloc(&device, host.size()));
    CHECK(cudaMemset(device, 0x5a, host.size()));
    CHECK(cudaMemcpy(host.data(), device, host.size(), cudaMemcpyDeviceToHost));
    print_hash("memory", host.data(), host.size());
    CHECK(cudaFree(device));
  } else if (is("driver_init")) {
    CHECK_ZERO(cuInit(0));
  }
  std::printf("%s\n", what);
  return 0;
}

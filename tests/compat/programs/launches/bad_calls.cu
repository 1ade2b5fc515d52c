// compat: calls that return an error and harm nothing: launches that cannot be, too much memory, wrong arguments
// soft: yes
#include "mix.h"

int main() {
  const bool small = on_software();
  const int count = small ? 1024 : 1 << 18, depth = small ? 3 : 300;
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(unsigned)));
  number_kernel<<<blocks_for(count), 256>>>(data, count);
  unsigned rounds = 0;
  const auto work = [&] {
    for (int i = 0; i < (small ? 1 : 10); ++i) launch_mix(data, count, rounds++, depth);
  };
  work();
  mix_kernel<<<1, 2048>>>(data, count, 0, depth);
  print_error("2048 threads", cudaGetLastError());
  work();
  mix_kernel<<<0, 256>>>(data, count, 0, depth);
  print_error("no blocks", cudaGetLastError());
  mix_kernel<<<dim3(1, 70000), 256>>>(data, count, 0, depth);
  print_error("70000 rows of blocks", cudaGetLastError());
  mix_kernel<<<1, 256, 200 << 10>>>(data, count, 0, depth);
  print_error("200 KiB of shared memory", cudaGetLastError());
  work();
  void* much = nullptr;
  print_error("a petabyte", cudaMalloc(&much, std::size_t{1} << 50));
  print_error("peek", cudaPeekAtLastError());
  print_error("last", cudaGetLastError());
  print_error("last again", cudaGetLastError());
  work();
  print_error("copy of kind 17", cudaMemcpy(data, data, 4, static_cast<cudaMemcpyKind>(17)));
  print_error("device 99", cudaSetDevice(99));
  cudaGetLastError();
  work();
  int value = 0;
  print_error("attribute 9999", cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0));
  print_error("null event", cudaEventQuery(nullptr));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  float elapsed = 0;
  print_error("events not recorded", cudaEventElapsedTime(&elapsed, begin, end));
  cudaGetLastError();
  print_error("attributes of no function", cudaFuncSetAttribute(static_cast<const void*>(&value),
                                                                cudaFuncAttributeMaxDynamicSharedMemorySize, 1000));
  cudaGetLastError();
  work();
  CHECK(cudaDeviceSynchronize());
  checked_results("all the same", data, count, rounds, depth);
  return 0;
}

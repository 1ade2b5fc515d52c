// compat: atexit handlers that launch a kernel and wait for it, registered before or after the first call
// args: before
// args: after
// args: twice
// soft: yes
#include "mix.h"

namespace {

unsigned* data;
int count, depth;

void launch_at_exit() {
  std::printf("handler\n");
  mix_kernel<<<blocks_for(count), 256>>>(data, count, 1, depth);
  print_error("launch", cudaGetLastError());
  print_error("synchronize", cudaDeviceSynchronize());
  std::vector<unsigned> got(static_cast<std::size_t>(count));
  const cudaError_t copied = cudaMemcpy(got.data(), data, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost);
  print_error("copy", copied);
  if (copied == cudaSuccess) print_hash("data", got.data(), got.size() * sizeof(unsigned));
}

}  // namespace

int main(int argc, char** argv) {
  const char* when = argc > 1 ? argv[1] : "before";
  if (std::strcmp(when, "after") != 0) std::atexit(launch_at_exit);
  const bool small = on_software();
  count = small ? 1024 : 1 << 20, depth = small ? 3 : 500;
  CHECK(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(unsigned)));
  number_kernel<<<blocks_for(count), 256>>>(data, count);
  for (unsigned round = 0; round < (small ? 3 : 100); ++round) launch_mix(data, count, round, depth);
  if (std::strcmp(when, "before") != 0) std::atexit(launch_at_exit);
  std::printf("main ends\n");
  return 0;
}

// compat: a fork after the GPU was used; the child tries to use it and is refused, the parent goes on
// soft: yes
#include "process.h"

int main() {
  print_compute("parent", 0);
  leave_running();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    unsigned* data = nullptr;
    print_error("malloc in the child", cudaMalloc(&data, 1024));
    print_error("synchronize in the child", cudaDeviceSynchronize());
    _exit(9);
  }
  print_end("child", child);
  CHECK(cudaDeviceSynchronize());
  print_compute("parent", 1);
  return 0;
}

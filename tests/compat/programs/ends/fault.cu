// compat: each kind of fault in a kernel: what the calls after it return, and how the program ends or goes on
// ignore: block: \[\d+,\d+,\d+\]
// args: assert return
// args: assert exit
// args: assert reset
// args: trap return
// args: trap exit
// args: trap reset
// args: null return
// args: null exit
// args: null reset
// args: wild return
// args: wild reset
// args: misaligned return
// args: misaligned reset
// args: shared return
// args: space return
// args: stack return
// args: stack reset
// args: print_assert return
// args: print_assert exit
// soft: yes
#include "fault.h"

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const Fault fault = fault_named(argv[1]);
  unsigned* data = fault_data();
  for (int round = 0; round < fault_length(100); ++round)
    launch_mix(data, fault_count(), static_cast<unsigned>(round), fault_length(300));
  print_error("launch", launch_fault(data, fault));
  print_error("synchronize", cudaDeviceSynchronize());
  print_error("again", cudaDeviceSynchronize());
  print_error("last", cudaGetLastError());
  unsigned* more = nullptr;
  print_error("malloc", cudaMalloc(&more, 1024));
  print_error("launch", launch_fault(data, Fault::kNone));
  unsigned word = 0;
  print_error("copy", cudaMemcpy(&word, data, sizeof word, cudaMemcpyDeviceToHost));
  if (std::strcmp(argv[2], "exit") == 0) std::exit(3);
  if (std::strcmp(argv[2], "reset") == 0) {
    print_error("reset", cudaDeviceReset());
    const cudaError_t error = cudaMalloc(&more, static_cast<std::size_t>(fault_count()) * sizeof(unsigned));
    print_error("malloc", error);
    if (error != cudaSuccess) return 4;
    number_kernel<<<blocks_for(fault_count()), 256>>>(more, fault_count());
    print_error("launch", cudaGetLastError());
    for (unsigned round = 0; round < 20; ++round) launch_mix(more, fault_count(), round, fault_length(100));
    checked_results("anew", more, fault_count(), 20, fault_length(100));
    print_error("free", cudaFree(more));
  }
  return 0;
}

// compat: after a fault: frees, destructions, queries and copies, behind a synchronize or at once
// ignore: block: \[\d+,\d+,\d+\]
// args: null synchronized
// args: null at_once
// args: assert synchronized
// args: misaligned at_once
// soft: yes
#include "fault.h"

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const Fault fault = fault_named(argv[1]);
  unsigned *data = fault_data(), *other = fault_data(), *host = nullptr;
  static unsigned registered[1024];
  cudaStream_t stream, idle;
  cudaEvent_t event;
  CHECK(cudaMallocHost(&host, 4096));
  CHECK(cudaHostRegister(registered, sizeof registered, cudaHostRegisterDefault));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&idle));
  CHECK(cudaEventCreate(&event));
  CHECK(launch_fault(data, fault, stream));
  cudaEventRecord(event, stream);
  if (std::strcmp(argv[2], "synchronized") == 0) print_error("synchronize", cudaStreamSynchronize(stream));
  print_error("free", cudaFree(data));
  print_error("event query", cudaEventQuery(event));
  print_error("event destroy", cudaEventDestroy(event));
  print_error("stream query", cudaStreamQuery(stream));
  print_error("stream destroy", cudaStreamDestroy(stream));
  print_error("idle stream destroy", cudaStreamDestroy(idle));
  print_error("copy", cudaMemcpy(host, other, 4096, cudaMemcpyDeviceToHost));
  print_error("copy async", cudaMemcpyAsync(host, other, 4096, cudaMemcpyDeviceToHost, nullptr));
  print_error("memset", cudaMemset(other, 0, 4096));
  print_error("free", cudaFree(other));
  print_error("free host", cudaFreeHost(host));
  print_error("unregister", cudaHostUnregister(registered));
  print_error("stream create", cudaStreamCreate(&stream));
  print_error("peek", cudaPeekAtLastError());
  print_error("last", cudaGetLastError());
  std::size_t free = 0, total = 0;
  print_error("memory", cudaMemGetInfo(&free, &total));
  return 0;
}

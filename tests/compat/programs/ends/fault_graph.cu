// compat: a fault in a kernel of a graph
// ignore: block: \[\d+,\d+,\d+\]
// args: null
// args: assert
// soft: yes
#include "fault.h"

int main(int argc, char** argv) {
  const Fault fault = fault_named(argc > 1 ? argv[1] : "null");
  unsigned* data = fault_data();
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t good, bad;
  cudaGraphExec_t exec_good, exec_bad;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 5; ++i) CHECK(launch_fault(data, Fault::kNone, stream));
  CHECK(cudaStreamEndCapture(stream, &good));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(launch_fault(data, Fault::kNone, stream));
  CHECK(launch_fault(data, fault, stream));
  CHECK(launch_fault(data, Fault::kNone, stream));
  CHECK(cudaStreamEndCapture(stream, &bad));
  CHECK(cudaGraphInstantiate(&exec_good, good, 0));
  CHECK(cudaGraphInstantiate(&exec_bad, bad, 0));
  for (int i = 0; i < fault_length(50); ++i) CHECK(cudaGraphLaunch(exec_good, stream));
  print_error("good", cudaStreamSynchronize(stream));
  print_error("launch", cudaGraphLaunch(exec_bad, stream));
  print_error("bad", cudaStreamSynchronize(stream));
  print_error("again", cudaStreamSynchronize(stream));
  print_error("launch", cudaGraphLaunch(exec_good, stream));
  print_error("destroy executable graph", cudaGraphExecDestroy(exec_bad));
  print_error("destroy graph", cudaGraphDestroy(bad));
  print_error("last", cudaGetLastError());
  return 0;
}

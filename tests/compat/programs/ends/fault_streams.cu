// compat: a fault in one stream while others run
// ignore: block: \[\d+,\d+,\d+\]
// args: null
// args: trap
// soft: yes
#include "fault.h"

int main(int argc, char** argv) {
  const Fault fault = fault_named(argc > 1 ? argv[1] : "null");
  constexpr int kStreams = 4;
  unsigned* data[kStreams];
  cudaStream_t streams[kStreams];
  for (int i = 0; i < kStreams; ++i) {
    data[i] = fault_data();
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  }
  // When the fault comes is not determined, so what these launches return is not looked at.
  const int rounds = 2 * fault_length(100);
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < kStreams; ++i)
      launch_fault(data[i], i == 2 && round == rounds / 2 ? fault : Fault::kNone, streams[i]);
  print_error("its stream", cudaStreamSynchronize(streams[2]));
  for (int i = 0; i < kStreams; ++i) print_error("stream", cudaStreamSynchronize(streams[i]));
  for (int i = 0; i < kStreams; ++i) print_error("query", cudaStreamQuery(streams[i]));
  print_error("device", cudaDeviceSynchronize());
  print_error("launch", launch_fault(data[0], Fault::kNone, streams[0]));
  return 0;
}

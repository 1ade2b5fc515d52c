// compat: a fault while another host thread waits in cudaStreamSynchronize, and a third in cudaEventSynchronize
// ignore: block: \[\d+,\d+,\d+\]
// args: null
// args: assert
// soft: yes
#include <atomic>
#include <thread>

#include "fault.h"

int main(int argc, char** argv) {
  const Fault fault = fault_named(argc > 1 ? argv[1] : "null");
  unsigned *one = fault_data(), *other = fault_data();
  cudaStream_t faulting, waiting;
  cudaEvent_t behind, end;
  CHECK(cudaStreamCreateWithFlags(&faulting, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&behind, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&end, cudaEventDisableTiming | cudaEventBlockingSync));
  // What waits is behind the fault, by an event, so it can never be done.
  for (int round = 0; round < fault_length(1000); ++round)
    launch_mix(one, fault_count(), static_cast<unsigned>(round), fault_length(3000), faulting);
  cudaError_t first = cudaSuccess, second = cudaSuccess;
  // The fault comes when all that is to meet it is there, however slow this thread is.
  std::atomic<bool> ready{false};
  const auto wait_until_ready = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  CHECK(cudaLaunchHostFunc(faulting, wait_until_ready, &ready));
  CHECK(launch_fault(one, fault, faulting));
  CHECK(cudaEventRecord(behind, faulting));
  CHECK(cudaStreamWaitEvent(waiting, behind, 0));
  launch_mix(other, fault_count(), 0, fault_length(100), waiting);
  CHECK(cudaEventRecord(end, waiting));
  std::thread stream_waiter([&] { first = cudaStreamSynchronize(waiting); });
  std::thread event_waiter([&] { second = cudaEventSynchronize(end); });
  ready = true;
  const cudaError_t third = cudaStreamSynchronize(faulting);
  stream_waiter.join();
  event_waiter.join();
  print_error("in the stream's wait", first);
  print_error("in the event's wait", second);
  print_error("in the faulting stream's", third);
  cudaError_t later = cudaSuccess;
  std::thread([&] { later = cudaDeviceSynchronize(); }).join();
  print_error("in a later thread", later);
  return 0;
}

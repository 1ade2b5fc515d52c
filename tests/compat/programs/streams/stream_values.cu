// compat: streams that write words and wait for words, in each other and from the host
// libs: cuda
// soft: yes
#include <cuda.h>

#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  cudaStream_t a = nullptr, b = nullptr;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  std::uint32_t *values = zeros<std::uint32_t>(count), *words = zeros<std::uint32_t>(4), *gate = nullptr;
  CHECK(cudaHostAlloc(&gate, sizeof *gate, cudaHostAllocMapped));
  *gate = 0;
  CHECK(cudaDeviceSynchronize());
  const auto word = [&](int i) { return reinterpret_cast<CUdeviceptr>(words + i); };
  // The values go to and fro between the streams; what is waited for is always written before it in the program.
  for (int round = 0; round < rounds; ++round) {
    const cudaStream_t now = round % 2 ? b : a, next = round % 2 ? a : b;
    launch_advance(values, count, steps, round, now);
    CHECK_ZERO(cuStreamWriteValue32(now, word(round % 2), round + 1, CU_STREAM_WRITE_VALUE_DEFAULT));
    CHECK_ZERO(cuStreamWaitValue32(next, word(round % 2), round + 1, CU_STREAM_WAIT_VALUE_GEQ));
  }
  CHECK(cudaStreamSynchronize(rounds % 2 ? b : a));
  must_have_advanced("to and fro", on_host(values, count).data(), count, steps, rounds);
  print_device_hash("to and fro", values, count);
  // A kernel stands behind a gate that the host opens.
  CHECK_ZERO(cuStreamWaitValue32(a, reinterpret_cast<CUdeviceptr>(gate), 7, CU_STREAM_WAIT_VALUE_EQ));
  launch_advance(values, count, steps, rounds, a);
  std::printf("behind the gate: %d\n", cudaStreamQuery(a) == cudaErrorNotReady);
  launch_advance(values + count / 2, 1, 0, 0, b);
  CHECK(cudaStreamSynchronize(b));
  *static_cast<volatile std::uint32_t*>(gate) = 7;
  CHECK(cudaStreamSynchronize(a));
  CHECK_ZERO(cuStreamWriteValue64(b, word(2), 0x123456789abcdef0ull, CU_STREAM_WRITE_VALUE_DEFAULT));
  CHECK(cudaStreamSynchronize(b));
  print_device_hash("words", words, 4);
  print_device_hash("values", values, count);
}

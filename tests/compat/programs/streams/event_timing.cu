// compat: events with times around kernels, queries and waits for them
// soft: yes
#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  cudaEvent_t start = nullptr, middle = nullptr, end = nullptr, untimed = nullptr, blocking = nullptr;
  for (cudaEvent_t* event : {&start, &middle, &end}) CHECK(cudaEventCreate(event));
  CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&blocking, cudaEventBlockingSync | cudaEventDisableTiming));
  bool sane = true;
  for (int round = 0; round < rounds; round += 2) {
    CHECK(cudaEventRecord(start));
    launch_advance(values, count, steps, round);
    CHECK(cudaEventRecord(middle));
    launch_advance(values, count, steps, round + 1);
    CHECK(cudaEventRecord(end));
    if (round % 4 == 0) {
      CHECK(cudaEventSynchronize(end));
    } else {
      while (cudaEventQuery(end) == cudaErrorNotReady) continue;
    }
    float first = 0, second = 0, all = 0;
    CHECK(cudaEventElapsedTime(&first, start, middle));
    CHECK(cudaEventElapsedTime(&second, middle, end));
    CHECK(cudaEventElapsedTime(&all, start, end));
    sane = sane && first > 0 && second > 0 && all >= first && all >= second && all < 60000;
    CHECK(cudaEventRecord(blocking));
    CHECK(cudaEventSynchronize(blocking));
  }
  std::printf("times are sane: %d\n", sane);
  CHECK(cudaEventRecord(untimed));
  CHECK(cudaEventSynchronize(untimed));
  float none = 0;
  std::printf("without times: %s\n", cudaGetErrorName(cudaEventElapsedTime(&none, untimed, end)));
  (void)cudaGetLastError();
  must_have_advanced("timed", on_host(values, count).data(), count, steps, (rounds + 1) / 2 * 2);
  print_device_hash("timed", values, count);
}

// Where and when the blocks of a small kernel run: to see what it waits for beside a batch program that is kept off
// some SMs. Prints a line for each request that took longer than SLOW_US from launch to end.
//
//   nvcc -O2 -arch=native -o hole hole.cu
//   gpuctl run --slice ls -- ./hole [BLOCKS [NS [REQUESTS [PERIOD_US [SLOW_US]]]]]
//
// A line: when the launch was, in us of CLOCK_MONOTONIC; us from launch to end; us from the first block's start to the
// last one's end; then for each start time (blocks that start within 5 us of each other): us after the first start,
// blocks, SMs.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <vector>

#include <time.h>
#include <algorithm>

struct Seen {
  unsigned long long start, end;
  unsigned sm;
};

__global__ void spin(Seen* seen, unsigned ns) {
  unsigned long long began, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - began < ns);
  if (threadIdx.x != 0) return;
  unsigned sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  seen[blockIdx.x] = {began, now, sm};
}

static double now_us() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void say(double at, double took, std::vector<Seen> seen) {
  std::sort(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) { return a.start < b.start; });
  unsigned long long end = 0;
  for (const Seen& one : seen) end = std::max(end, one.end);
  std::printf("%.0f: %.0f us, on the GPU %.0f:", at, took, (end - seen[0].start) / 1e3);
  for (std::size_t i = 0; i < seen.size();) {
    std::size_t n = i;
    std::set<unsigned> sms;
    while (n < seen.size() && seen[n].start - seen[i].start < 5000) sms.insert(seen[n++].sm);
    std::printf(" +%.0f: %zu on %zu;", (seen[i].start - seen[0].start) / 1e3, n - i, sms.size());
    i = n;
  }
  std::printf("\n");
}

int main(int count, char** words) {
  const auto number = [&](int i, double otherwise) { return i < count ? std::atof(words[i]) : otherwise; };
  const unsigned blocks = number(1, 64), ns = number(2, 50'000), requests = number(3, 5'000);
  const double period_us = number(4, 2'000), slow_us = number(5, 150);
  Seen* device;
  std::vector<Seen> seen(blocks);
  cudaStream_t stream;
  if (cudaMalloc(&device, blocks * sizeof(Seen)) != cudaSuccess ||
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
    std::fprintf(stderr, "hole: no GPU\n");
    return 1;
  }
  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(1 / period_us);
  std::vector<double> all;
  double due = now_us() + 100'000;
  for (unsigned i = 0; i < requests; ++i, due += gap(random)) {
    while (now_us() < due) {
    }
    const double began = now_us();
    spin<<<blocks, 256, 0, stream>>>(device, ns);
    if (cudaStreamSynchronize(stream) != cudaSuccess) return 1;
    const double took = now_us() - began;
    all.push_back(took);
    if (took < slow_us || i < 20) continue;
    cudaMemcpyAsync(seen.data(), device, blocks * sizeof(Seen), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    say(began, took, seen);
  }
  std::sort(all.begin(), all.end());
  std::printf("%zu requests: p50 %.0f, p90 %.0f, p99 %.0f us\n", all.size(), all[all.size() / 2],
              all[all.size() * 9 / 10], all[all.size() * 99 / 100]);
}

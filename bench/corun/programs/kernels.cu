// The synthetic programs of the co-run matrix: a latency-sensitive one (ls) and a batch one.
//
//   corun-kernels ls compute|memory|spin [--blocks N] [--iterations N] [--period-us X] [--arrival poisson|periodic]
//   corun-kernels batch compute|memory [--blocks N] [--iterations N] [--depth N]
//   corun-kernels calibrate --blocks N --kernel-us X
//   corun-kernels calibrate --block-us X --kernel-us Y
//
// --priority high|middle|low|none: of the stream of ls or batch. calibrate finds iterations for a kernel of so many
// blocks, or iterations for a block while the GPU is full and blocks for the kernel.
//
// compute: blocks of 256 threads, each a chain of `iterations` multiply-adds. memory: blocks * 256 float4 are read from
// two arrays and written to a third; `iterations` is not used. spin: blocks of 256 threads, each of `iterations` ns,
// however many share an SM.
//
// ls and batch warm up and print READY. Then each line `GO start_ns settle_s seconds seed` on standard input is one
// round. It begins at that CLOCK_MONOTONIC time and ends with one line of JSON; its first settle_s do not count. The
// end of standard input ends the program.
//
// ls: a request is one launch and a wait for it. Its latency runs from its arrival, which does not depend on earlier
// requests. Requests that arrived in time but did not begin until the end of the round count with their age at that
// end; `unserved` says how many.
//
// batch: `depth` launches are in flight. The rate is that between the first and the last completion that count.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <time.h>

#include "base/percentile.h"

#define CHECK(call)                                                                       \
  do {                                                                                    \
    const cudaError_t status = (call);                                                    \
    if (status != cudaSuccess) {                                                          \
      std::fprintf(stderr, "corun-kernels: %s: %s\n", #call, cudaGetErrorString(status)); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

using gpuctl::percentile;

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kKept = 1024;  // results of so many blocks are kept: they stay in the cache
constexpr int kWarmUps = 20;
constexpr std::int64_t kSpinNs = 200'000;  // awake so long before a launch is due
constexpr int kTrials = 5;
constexpr int kMoreWaves = 4;

__global__ void compute(float* out, unsigned iterations, float scale, float offset) {
  float x = static_cast<float>(threadIdx.x);
#pragma unroll 16
  for (unsigned i = 0; i < iterations; ++i) x = fmaf(x, scale, offset);
  out[(blockIdx.x % kKept) * kThreads + threadIdx.x] = x;
}

__global__ void spin(float* out, unsigned ns) {
  unsigned long long began, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - began < ns);
  if (threadIdx.x == 0) out[blockIdx.x % kKept] = 1;
}

__global__ void memory(float4* out, const float4* left, const float4* right, float scale) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  const float4 a = left[i], b = right[i];
  out[i] = make_float4(a.x + scale * b.x, a.y + scale * b.y, a.z + scale * b.z, a.w + scale * b.w);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "corun-kernels: %s\n", what.c_str());
  std::exit(2);
}

std::int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Wakes early and spins: a request must not pay for the scheduler of the CPU.
void wait_until(std::int64_t at_ns) {
  const std::int64_t sleep_to = at_ns - kSpinNs;
  if (sleep_to > now_ns()) {
    const timespec time = {static_cast<time_t>(sleep_to / 1'000'000'000), static_cast<long>(sleep_to % 1'000'000'000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
  }
  while (now_ns() < at_ns) {
  }
}

using Options = std::map<std::string, std::string>;

Options read_options(int count, char** words, int first) {
  Options options;
  for (int i = first; i < count; i += 2) {
    if (std::strncmp(words[i], "--", 2) != 0 || i + 1 == count)
      fail(std::string("not an option with a value: ") + words[i]);
    options[words[i] + 2] = words[i + 1];
  }
  return options;
}

double number(const Options& options, const std::string& name, double otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : std::atof(found->second.c_str());
}

std::string word(const Options& options, const std::string& name, const std::string& otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : found->second;
}

cudaStream_t make_stream(const std::string& priority) {
  int least = 0, greatest = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const int value = priority == "high" ? greatest : priority == "low" ? least : priority == "middle" ? greatest / 2 : 0;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, value));
  return stream;
}

class Kernel {
 public:
  Kernel(const std::string& name, unsigned blocks, unsigned iterations)
      : memory_bound_(name == "memory"), spins_(name == "spin"), blocks_(blocks), iterations_(iterations) {
    if (!memory_bound_ && !spins_ && name != "compute") fail("no such kernel: " + name);
    const std::size_t bytes =
        memory_bound_ ? std::size_t{blocks} * kThreads * sizeof(float4) : std::size_t{kKept} * kThreads * sizeof(float);
    for (int i = 0; i < (memory_bound_ ? 3 : 1); ++i) {
      CHECK(cudaMalloc(&arrays_[i], bytes));
      CHECK(cudaMemset(arrays_[i], 0, bytes));
    }
    CHECK(cudaDeviceSynchronize());
  }
  ~Kernel() {
    for (void* array : arrays_) cudaFree(array);
  }
  Kernel(const Kernel&) = delete;

  void launch(cudaStream_t stream) {
    if (memory_bound_) {
      memory<<<blocks_, kThreads, 0, stream>>>(static_cast<float4*>(arrays_[0]), static_cast<const float4*>(arrays_[1]),
                                               static_cast<const float4*>(arrays_[2]), 0.5f);
    } else if (spins_) {
      spin<<<blocks_, kThreads, 0, stream>>>(static_cast<float*>(arrays_[0]), iterations_);
    } else {
      compute<<<blocks_, kThreads, 0, stream>>>(static_cast<float*>(arrays_[0]), iterations_, 0.998f, 0.5f);
    }
    CHECK(cudaGetLastError());
  }

 private:
  bool memory_bound_, spins_;
  unsigned blocks_, iterations_;
  void* arrays_[3] = {};
};

struct Round {
  std::int64_t start_ns, counts_from_ns, end_ns;
  std::uint64_t seed;
};

// The next round; false at the end of the input.
bool read_round(Round& round) {
  char line[256];
  long long start;
  double settle_s, seconds;
  unsigned long long seed;
  if (!std::fgets(line, sizeof line, stdin)) return false;
  if (std::sscanf(line, "GO %lld %lf %lf %llu", &start, &settle_s, &seconds, &seed) != 4)
    fail(std::string("not a round: ") + line);
  const std::int64_t counts_from = start + static_cast<std::int64_t>(settle_s * 1e9);
  round = {start, counts_from, counts_from + static_cast<std::int64_t>(seconds * 1e9), seed};
  return true;
}

void ls_round(const Round& round, Kernel& kernel, cudaStream_t stream, const std::string& arrival, double period_us) {
  std::mt19937_64 random(round.seed);
  std::exponential_distribution<double> gap(1 / (period_us * 1000));
  std::vector<double> latencies, services;
  double at = 0;
  std::size_t unserved = 0;
  wait_until(round.start_ns);
  for (;;) {
    at += arrival == "poisson" ? gap(random) : period_us * 1000;
    const std::int64_t due = round.start_ns + static_cast<std::int64_t>(at);
    if (due >= round.end_ns) break;
    const bool counts = due >= round.counts_from_ns;
    wait_until(std::min(due, round.end_ns));
    const std::int64_t begin = now_ns();
    if (begin >= round.end_ns) {
      unserved += counts;
      if (counts) latencies.push_back(static_cast<double>(round.end_ns - due) / 1000);
      continue;
    }
    kernel.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    const std::int64_t end = now_ns();
    if (!counts) continue;
    latencies.push_back(static_cast<double>(end - due) / 1000);
    services.push_back(static_cast<double>(end - begin) / 1000);
  }
  std::sort(latencies.begin(), latencies.end());
  std::sort(services.begin(), services.end());
  std::printf(
      "{\"count\": %zu, \"unserved\": %zu, \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, "
      "\"service_p50_us\": %.1f, \"service_p99_us\": %.1f}\n",
      latencies.size(), unserved, percentile(latencies, 0.5), percentile(latencies, 0.9), percentile(latencies, 0.99),
      percentile(latencies, 1), percentile(services, 0.5), percentile(services, 0.99));
}

void batch_round(const Round& round, Kernel& kernel, cudaStream_t stream, std::vector<cudaEvent_t>& events) {
  std::size_t issued = 0, landed = 0, counted = 0;
  std::int64_t first = 0, last = 0;
  wait_until(round.start_ns);
  do {
    while (issued - landed < events.size()) {
      kernel.launch(stream);
      CHECK(cudaEventRecord(events[issued++ % events.size()], stream));
    }
    CHECK(cudaEventSynchronize(events[landed++ % events.size()]));
    last = now_ns();
    if (last >= round.counts_from_ns && counted++ == 0) first = last;
  } while (last < round.end_ns);
  CHECK(cudaStreamSynchronize(stream));
  const double rate = counted > 1 ? static_cast<double>(counted - 1) * 1e9 / static_cast<double>(last - first)
                                  : 1e9 / static_cast<double>(last - round.start_ns);
  std::printf("{\"count\": %zu, \"rate\": %.4f}\n", counted, rate);
}

// The fastest of some runs alone on the GPU, us.
double kernel_us(unsigned blocks, unsigned iterations) {
  Kernel kernel("compute", blocks, iterations);
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    float milliseconds = 0;
    CHECK(cudaEventRecord(begin, nullptr));
    kernel.launch(nullptr);
    CHECK(cudaEventRecord(end, nullptr));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    best = trial == 0 ? milliseconds * 1000.0 : std::min(best, milliseconds * 1000.0);
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  return best;
}

// Iterations with which measure(iterations) is `target`: measured times grow with them, with an offset.
template <typename Measure>
unsigned iterations_for(const Measure& measure, double target) {
  double low_n = 64, low = measure(64);
  double n = 640;
  for (int step = 0; step < 6; ++step) {
    const double found = measure(static_cast<unsigned>(n));
    const double slope = std::max((found - low) / (n - low_n), 1e-9);
    const double next = std::clamp(low_n + (target - low) / slope, 1.0, std::min(1e9, 100 * n));
    if (std::fabs(next - n) < 0.005 * n) break;
    n = std::round(next);
  }
  return static_cast<unsigned>(n);
}

void calibrate(const Options& options) {
  int device = 0, sms = 0, per_sm = 0;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, compute, kThreads, 0));
  const unsigned wave = static_cast<unsigned>(std::max(per_sm, 1) * sms);
  const double target_us = number(options, "kernel-us", 0), block_us = number(options, "block-us", 0);
  kernel_us(wave, 100'000);  // the clock of the GPU rises
  unsigned blocks = static_cast<unsigned>(number(options, "blocks", wave));
  unsigned iterations = 0;
  if (block_us > 0) {
    // What one more wave of blocks adds is the time of a block.
    iterations = iterations_for(
        [&](unsigned n) { return (kernel_us((1 + kMoreWaves) * wave, n) - kernel_us(wave, n)) / kMoreWaves; },
        block_us);
    blocks = wave * static_cast<unsigned>(std::max(1.0, std::round(target_us / block_us)));
  } else {
    iterations = iterations_for([&](unsigned n) { return kernel_us(blocks, n); }, target_us);
  }
  std::printf("{\"blocks\": %u, \"iterations\": %u, \"kernel_us\": %.1f, \"wave\": %u, \"sms\": %d}\n", blocks,
              iterations, kernel_us(blocks, iterations), wave, sms);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  prctl(PR_SET_TIMERSLACK, 1);
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "calibrate") return calibrate(read_options(argc, argv, 2)), 0;
  if ((verb != "ls" && verb != "batch") || argc < 3)
    fail("usage: corun-kernels ls|batch compute|memory OPTION..., or calibrate OPTION...");
  const Options options = read_options(argc, argv, 3);
  Kernel kernel(argv[2], static_cast<unsigned>(number(options, "blocks", 64)),
                static_cast<unsigned>(number(options, "iterations", 1000)));
  const cudaStream_t stream = make_stream(word(options, "priority", "none"));
  std::vector<cudaEvent_t> events(static_cast<std::size_t>(number(options, "depth", 4)));
  for (cudaEvent_t& event : events) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int i = 0; i < static_cast<int>(number(options, "warm-ups", kWarmUps)); ++i) {
    kernel.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
  }
  std::puts("READY");
  Round round;
  while (read_round(round)) {
    if (verb == "ls") {
      ls_round(round, kernel, stream, word(options, "arrival", "poisson"), number(options, "period-us", 2000));
    } else {
      batch_round(round, kernel, stream, events);
    }
  }
}

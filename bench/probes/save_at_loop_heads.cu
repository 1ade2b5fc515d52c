// Evicting below one block-task: what it costs to look at each head of a kernel's outermost loop, how soon all blocks
// have then saved what is live there and left, and what it costs to go on. The kernel is myocyte of the suite, whose
// block-tasks take milliseconds: a thread's loop over time steps, with its eight states, the time, the next step's
// length and the number of steps live at the head. Blocks share nothing and have no barriers. The results must be those
// of the plain kernel, bit by bit.
// Usage: save_at_loop_heads [CELLS [MILLISECONDS]]. Build, in the repository's root:
//   nvcc -O3 -std=c++20 -arch=sm_90 -fmad=false -I. -o save_at_loop_heads bench/probes/save_at_loop_heads.cu
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"
#include "kernels/particles/myocyte_model.h"

using namespace gpuctl::bench;

namespace {

constexpr unsigned kThreads = 32;
constexpr int kRounds = 15;

/// What is live at the loop's head, but the cell, which the thread reads again.
using Live = MyocyteProgress;

struct Resumable {
  const volatile unsigned* leave;  ///< another value than 0: save and leave
  Live* saved;                     ///< by thread
  unsigned every;                  ///< steps between two looks
};

__device__ void write(float* out, const Live& live, unsigned i, unsigned count) {
  for (unsigned k = 0; k < kMyocyteStates; ++k) out[k * count + i] = live.state[k];
  out[kMyocyteStates * count + i] = __uint_as_float(live.steps);
}

__global__ void plain(const MyocyteCell* __restrict__ cells, float* out, float end, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Live live;
  myocyte_at_rest(cells[i], live);
  while (live.time < end) myocyte_step(cells[i], end, live);
  write(out, live, i, count);
}

/// A thread whose time is over has `time` at the end, so that it has nothing left to do when it comes back.
__global__ void resumable(const MyocyteCell* __restrict__ cells, float* out, float end, unsigned count,
                          const Resumable how, bool comes_back) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Live live;
  if (comes_back)
    live = how.saved[i];
  else
    myocyte_at_rest(cells[i], live);
  bool left = false;
  for (unsigned n = how.every; live.time < end && !left;) {
    myocyte_step(cells[i], end, live);
    if (--n != 0) continue;
    n = how.every;
    left = *how.leave != 0;
  }
  how.saved[i] = live;
  if (!left) write(out, live, i, count);
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Work>
double gpu_us(cudaStream_t stream, Work work) {
  static cudaEvent_t begin = nullptr, end = nullptr;
  if (begin == nullptr) {
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
  CHECK(cudaEventRecord(begin, stream));
  work();
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaEventSynchronize(end));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  return 1000.0 * ms;
}

struct Spread {
  double median, least, most;
};

Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 135'168;  // one wave of an H100
  const float end = argc > 2 ? std::strtof(argv[2], nullptr) : 20.0f;
  const unsigned blocks = (count + kThreads - 1) / kThreads;
  std::vector<MyocyteCell> cells(count);
  std::srand(1);
  const auto between = [](float low, float high) { return low + (high - low) * (std::rand() % 65536) / 65536.0f; };
  for (MyocyteCell& cell : cells) cell = {between(3, 5), between(0.07f, 0.11f), between(20, 60), between(-86, -83)};

  MyocyteCell* on_device;
  float* out;
  Resumable how{};
  unsigned* leave;
  const std::size_t words = std::size_t{count} * (kMyocyteStates + 1);
  CHECK(cudaMalloc(&on_device, count * sizeof(MyocyteCell)));
  CHECK(cudaMalloc(&out, words * sizeof(float)));
  CHECK(cudaMalloc(&how.saved, count * sizeof(Live)));
  CHECK(cudaMalloc(&leave, sizeof(unsigned)));
  CHECK(cudaMemcpy(on_device, cells.data(), count * sizeof(MyocyteCell), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(leave, 0, sizeof(unsigned)));
  how.leave = leave;
  cudaStream_t stream, words_stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&words_stream, cudaStreamNonBlocking));
  unsigned* word;  // pinned
  CHECK(cudaMallocHost(&word, sizeof(unsigned)));

  const auto run_plain = [&] { plain<<<blocks, kThreads, 0, stream>>>(on_device, out, end, count); };
  const auto run = [&](bool comes_back) {
    resumable<<<blocks, kThreads, 0, stream>>>(on_device, out, end, count, how, comes_back);
  };
  const auto results = [&] {
    std::vector<float> host(words);
    CHECK(cudaMemcpy(host.data(), out, words * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemset(out, 0xff, words * sizeof(float)));
    return host;
  };

  gpu_us(stream, run_plain);
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) times.push_back(gpu_us(stream, run_plain));
  const std::vector<float> right = results();
  const Spread alone = spread(times);
  std::vector<unsigned> steps(count);
  std::memcpy(steps.data(), &right[std::size_t{kMyocyteStates} * count], count * sizeof(unsigned));
  const unsigned most = *std::max_element(steps.begin(), steps.end());
  std::printf("plain: %.0f us (%.0f to %.0f), %u blocks, at most %u steps, %.1f us each; live: %zu bytes a thread\n",
              alone.median, alone.least, alone.most, blocks, most, alone.median / most, sizeof(Live));

  bool same = true;
  for (const unsigned every : {1u, 2u, 4u, 16u, 64u}) {
    how.every = every;
    gpu_us(stream, [&] { run(false); });
    std::vector<double> looking, left, back;
    for (int i = 0; i < kRounds; ++i) looking.push_back(gpu_us(stream, [&] { run(false); }));
    same &= std::memcmp(results().data(), right.data(), words * sizeof(float)) == 0;
    for (int i = 0; i < kRounds; ++i) {
      const double begin = now_us();
      cudaEvent_t done;
      CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
      run(false);
      CHECK(cudaEventRecord(done, stream));
      while (now_us() < begin + alone.median * (i + 1) / (kRounds + 2)) {
      }
      const double asked = now_us();
      *word = 1;
      CHECK(cudaMemcpyAsync(leave, word, sizeof(unsigned), cudaMemcpyHostToDevice, words_stream));
      while (cudaEventQuery(done) == cudaErrorNotReady) {
      }
      left.push_back(now_us() - asked);
      CHECK(cudaStreamSynchronize(words_stream));
      CHECK(cudaMemset(leave, 0, sizeof(unsigned)));
      CHECK(cudaDeviceSynchronize());
      back.push_back(asked - begin + left.back() + gpu_us(stream, [&] { run(true); }));
      same &= std::memcmp(results().data(), right.data(), words * sizeof(float)) == 0;
      CHECK(cudaEventDestroy(done));
    }
    const Spread look = spread(looking), gone = spread(left), whole = spread(back);
    std::printf(
        "looks each %u steps: %+.1f %% (%+.1f to %+.1f); all left after %.0f us (%.0f to %.0f); evicted once and "
        "brought back %+.1f %%\n",
        every, 100 * (look.median / alone.median - 1), 100 * (look.least / alone.median - 1),
        100 * (look.most / alone.median - 1), gone.median, gone.least, gone.most,
        100 * (whole.median / alone.median - 1));
  }
  std::printf("results: %s\n", same ? "all the same" : "WRONG");
  return same ? 0 : 1;
}

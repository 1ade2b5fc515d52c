// What gpuslice_launch() and <gpuslice/device.cuh> promise: which launches are refused, and that every block-task of a
// grid of up to three dimensions is run once with its own index, with early returns, barriers and dynamic shared
// memory. by_hand [ROUNDS]; exit status 0 if all is as promised, else each exception is a line on stderr.
#include <cstdio>
#include <cstdlib>
#include <gpuslice/device.cuh>
#include <vector>

static int wrong = 0;

static void expect(const char* what, long found, long expected) {
  if (found == expected) return;
  std::fprintf(stderr, "%s: %ld instead of %ld\n", what, found, expected);
  ++wrong;
}

__global__ void ordinary(unsigned* out) {
  *out = 1;
}
__global__ void without_parameters() {}

/// Adds to each thread's element its number plus one: a block-task that is run twice, or not at all, leaves something
/// else. A thread reads what its mirror image in the block wrote; odd blocks return early.
__global__ void mirror(gpuslice::launch_args args, unsigned* out, unsigned char few, unsigned long long add) {
  gpuslice::for_each_block_task(args, [&](dim3 block) {
    extern __shared__ unsigned row[];
    const dim3 grid = gpuslice::grid(args);
    const unsigned number = (block.z * grid.y + block.y) * grid.x + block.x;
    row[threadIdx.x] = number * blockDim.x + threadIdx.x;
    __syncthreads();
    if (number % 2 == 1 && threadIdx.x >= few) return;
    const unsigned other = row[blockDim.x - 1 - threadIdx.x];
    out[number * blockDim.x + threadIdx.x] += other + 1 + static_cast<unsigned>(add);
  });
}

static void expect_refusals(unsigned* out) {
  cudaFunction_t by_hand = nullptr, plain = nullptr, bare = nullptr;
  expect("symbol", cudaGetFuncBySymbol(&by_hand, reinterpret_cast<const void*>(mirror)), cudaSuccess);
  expect("symbol", cudaGetFuncBySymbol(&plain, reinterpret_cast<const void*>(ordinary)), cudaSuccess);
  expect("symbol", cudaGetFuncBySymbol(&bare, reinterpret_cast<const void*>(without_parameters)), cudaSuccess);
  const gpuslice_launch_config good = {GPUSLICE_DEVICE_ABI, {1, 1, 1}, {32, 1, 1}, 128, nullptr};
  unsigned char few = 3;
  unsigned long long add = 0;
  void* params[] = {&out, &few, &add};
  void* missing[] = {&out, nullptr, &add};
  expect("null function", gpuslice_launch(nullptr, &good, params), GPUSLICE_ERROR_INVALID);
  expect("null config", gpuslice_launch(by_hand, nullptr, params), GPUSLICE_ERROR_INVALID);
  expect("null parameters", gpuslice_launch(by_hand, &good, nullptr), GPUSLICE_ERROR_INVALID);
  expect("null parameter", gpuslice_launch(by_hand, &good, missing), GPUSLICE_ERROR_INVALID);
  expect("ordinary kernel", gpuslice_launch(plain, &good, params), GPUSLICE_ERROR_INVALID);
  expect("kernel without parameters", gpuslice_launch(bare, &good, nullptr), GPUSLICE_ERROR_INVALID);
  gpuslice_launch_config config = good;
  config.abi = GPUSLICE_DEVICE_ABI + 1;
  expect("another version", gpuslice_launch(by_hand, &config, params), GPUSLICE_ERROR_INVALID);
  for (int i = 0; i < 3; ++i) {
    config = good;
    config.grid[i] = 0;
    expect("empty grid", gpuslice_launch(by_hand, &config, params) > 0, 1);
    config = good;
    config.block[i] = 0;
    expect("empty block", gpuslice_launch(by_hand, &config, params) > 0, 1);
  }
  config = good;
  config.block[0] = 2048;
  expect("large block", gpuslice_launch(by_hand, &config, params) > 0, 1);
}

static void run(unsigned* out, dim3 grid, bool ordinary_launch) {
  constexpr unsigned kThreads = 64;
  constexpr unsigned char kFew = 7;
  constexpr unsigned long long kAdd = 5;
  const unsigned blocks = grid.x * grid.y * grid.z;
  std::vector<unsigned> found(blocks * kThreads);
  expect("cudaMemset", cudaMemset(out, 0, found.size() * sizeof(unsigned)), cudaSuccess);
  if (ordinary_launch) {
    mirror<<<grid, kThreads, kThreads * sizeof(unsigned)>>>(gpuslice::launch_args{}, out, kFew, kAdd);
    expect("launch", cudaGetLastError(), cudaSuccess);
  } else {
    expect("launch", gpuslice::launch(mirror, grid, kThreads, kThreads * sizeof(unsigned), nullptr, out, kFew, kAdd),
           0);
  }
  expect("copy", cudaMemcpy(found.data(), out, found.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), cudaSuccess);
  unsigned differ = 0;
  for (unsigned i = 0; i < found.size(); ++i) {
    const unsigned block = i / kThreads, thread = i % kThreads;
    const bool returned = block % 2 == 1 && thread >= kFew;
    differ += found[i] != (returned ? 0 : block * kThreads + kThreads - 1 - thread + 1 + static_cast<unsigned>(kAdd));
  }
  expect("elements that differ", differ, 0);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  unsigned* out = nullptr;
  if (cudaMalloc(&out, 1 << 20) != cudaSuccess) return 1;
  for (int round = 0; round < rounds; ++round) {
    expect_refusals(out);
    for (const dim3 grid :
         {dim3(1), dim3(1000), dim3(1, 997), dim3(1, 1, 61), dim3(31, 33), dim3(7, 11, 13), dim3(3, 1, 5)}) {
      run(out, grid, false);
      run(out, grid, true);
    }
  }
  std::printf("by_hand: %d rounds, %d wrong\n", rounds, wrong);
  return wrong == 0 ? 0 : 3;
}

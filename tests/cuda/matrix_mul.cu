// Two streams with pinned memory, asynchronous copies and events; a two-dimensional grid of shared-memory tiles.
#include "program.h"

constexpr int kTile = 8;

__global__ void matrixMul(const float* a, const float* b, float* out, int side) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < side; first += kTile) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * side + first + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * side + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    __syncthreads();
  }
  out[row * side + column] = sum;
}

int main(int argc, char** argv) {
  Rounds rounds("matrix_mul", argc, argv);
  const int side = 40 * rounds.scale();
  const std::size_t count = std::size_t(side) * side;
  const std::size_t bytes = count * sizeof(float);
  const std::vector<float> a = small_numbers(count, 3);
  const std::vector<float> b = small_numbers(count, 4);
  std::vector<float> expected(count, 0.0f);
  for (int row = 0; row < side; ++row) {
    for (int k = 0; k < side; ++k) {
      for (int column = 0; column < side; ++column) {
        expected[row * side + column] += a[row * side + k] * b[k * side + column];
      }
    }
  }

  struct Lane {
    cudaStream_t stream;
    cudaEvent_t done;
    float* host;
    float* a;
    float* b;
    float* out;
  };
  Lane lanes[2];
  for (Lane& lane : lanes) {
    CUDA_CHECK(cudaStreamCreate(&lane.stream));
    CUDA_CHECK(cudaEventCreate(&lane.done));
    CUDA_CHECK(cudaMallocHost(&lane.host, bytes));
    CUDA_CHECK(cudaMalloc(&lane.a, bytes));
    CUDA_CHECK(cudaMalloc(&lane.b, bytes));
    CUDA_CHECK(cudaMalloc(&lane.out, bytes));
    CUDA_CHECK(cudaMemcpy(lane.a, a.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(lane.b, b.data(), bytes, cudaMemcpyHostToDevice));
  }

  const auto finish = [&](Lane& lane) {
    CUDA_CHECK(cudaEventSynchronize(lane.done));
    rounds.compare(lane.host, expected.data(), bytes);
  };
  const dim3 grid(side / kTile, side / kTile);
  const dim3 block(kTile, kTile);
  while (rounds.next()) {
    Lane& lane = lanes[rounds.round() % 2];
    if (rounds.round() >= 2) finish(lane);
    CUDA_CHECK(cudaMemsetAsync(lane.out, 0xff, bytes, lane.stream));
    matrixMul<<<grid, block, 0, lane.stream>>>(lane.a, lane.b, lane.out, side);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(lane.host, lane.out, bytes, cudaMemcpyDeviceToHost, lane.stream));
    CUDA_CHECK(cudaEventRecord(lane.done, lane.stream));
  }
  const int issued = rounds.round() + 1;
  for (int round = issued < 2 ? 0 : issued - 2; round < issued; ++round) finish(lanes[round % 2]);
  for (Lane& lane : lanes) {
    CUDA_CHECK(cudaFree(lane.a));
    CUDA_CHECK(cudaFree(lane.b));
    CUDA_CHECK(cudaFree(lane.out));
    CUDA_CHECK(cudaFreeHost(lane.host));
    CUDA_CHECK(cudaEventDestroy(lane.done));
    CUDA_CHECK(cudaStreamDestroy(lane.stream));
  }
  return rounds.finish();
}

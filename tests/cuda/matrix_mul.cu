// Two streams with pinned memory, asynchronous copies and events; a two-dimensional grid of shared-memory tiles.
#include "program.h"

constexpr int kTile = 8;
constexpr int kSide = 40;

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
  const int rounds = rounds_from(argc, argv);
  constexpr std::size_t kCount = kSide * kSide;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  const std::vector<float> a = small_numbers(kCount, 3);
  std::vector<float> b = small_numbers(kCount, 4);
  for (float& number : b) number = static_cast<float>(static_cast<int>(number) % 256);  // keeps every sum below 2^24
  std::vector<float> expected(kCount, 0.0f);
  for (int row = 0; row < kSide; ++row) {
    for (int k = 0; k < kSide; ++k) {
      for (int column = 0; column < kSide; ++column) {
        expected[row * kSide + column] += a[row * kSide + k] * b[k * kSide + column];
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
    CUDA_CHECK(cudaMallocHost(&lane.host, kBytes));
    CUDA_CHECK(cudaMalloc(&lane.a, kBytes));
    CUDA_CHECK(cudaMalloc(&lane.b, kBytes));
    CUDA_CHECK(cudaMalloc(&lane.out, kBytes));
    CUDA_CHECK(cudaMemcpy(lane.a, a.data(), kBytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(lane.b, b.data(), kBytes, cudaMemcpyHostToDevice));
  }

  Rounds report("matrix_mul", rounds);
  const auto finish = [&](Lane& lane) {
    CUDA_CHECK(cudaEventSynchronize(lane.done));
    report.compare(lane.host, expected.data(), kBytes);
  };
  const dim3 grid(kSide / kTile, kSide / kTile);
  const dim3 block(kTile, kTile);
  for (int round = 0; round < rounds; ++round) {
    Lane& lane = lanes[round % 2];
    if (round >= 2) finish(lane);
    CUDA_CHECK(cudaMemsetAsync(lane.out, 0xff, kBytes, lane.stream));
    matrixMul<<<grid, block, 0, lane.stream>>>(lane.a, lane.b, lane.out, kSide);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(lane.host, lane.out, kBytes, cudaMemcpyDeviceToHost, lane.stream));
    CUDA_CHECK(cudaEventRecord(lane.done, lane.stream));
  }
  for (int round = rounds; round < rounds + 2; ++round) {
    if (round >= 2) finish(lanes[round % 2]);
  }
  for (Lane& lane : lanes) {
    CUDA_CHECK(cudaFree(lane.a));
    CUDA_CHECK(cudaFree(lane.b));
    CUDA_CHECK(cudaFree(lane.out));
    CUDA_CHECK(cudaFreeHost(lane.host));
    CUDA_CHECK(cudaEventDestroy(lane.done));
    CUDA_CHECK(cudaStreamDestroy(lane.stream));
  }
  return report.finish();
}

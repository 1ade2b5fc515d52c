// compat: cuBLAS batched and strided batched products in several streams, beside ordinary kernels
// libs: cublas
// builds: both ptx cubin shared
#include <cublas_v2.h>

#include <vector>

#include "mix.h"

namespace {

constexpr int kStreams = 4, kSize = 64, kBatch = 100, kRounds = 25;
constexpr std::size_t kMatrix = kSize * kSize;

float element(std::size_t i, unsigned seed) {
  return static_cast<float>(static_cast<int>((i * 2654435761u + seed) >> 9 & 7) - 3);
}

struct Lane {
  cudaStream_t stream;
  cublasHandle_t handle;
  float *a, *b, *c;
  const float **as, **bs;
  float** cs;
  unsigned* words;
};

Lane make_lane(unsigned seed) {
  Lane lane;
  CHECK(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
  CHECK_ZERO(cublasCreate(&lane.handle));
  CHECK_ZERO(cublasSetStream(lane.handle, lane.stream));
  std::vector<float> a(kMatrix * kBatch), b(kMatrix * kBatch);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = element(i, seed), b[i] = element(i, seed + 77);
  CHECK(cudaMalloc(&lane.a, a.size() * sizeof(float)));
  CHECK(cudaMalloc(&lane.b, b.size() * sizeof(float)));
  CHECK(cudaMalloc(&lane.c, a.size() * sizeof(float)));
  CHECK(cudaMemcpy(lane.a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(lane.b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(lane.c, 0, a.size() * sizeof(float)));
  std::vector<float*> as, bs, cs;
  for (int i = 0; i < kBatch; ++i)
    as.push_back(lane.a + i * kMatrix), bs.push_back(lane.b + i * kMatrix), cs.push_back(lane.c + i * kMatrix);
  CHECK(cudaMalloc(&lane.as, kBatch * sizeof(float*)));
  CHECK(cudaMalloc(&lane.bs, kBatch * sizeof(float*)));
  CHECK(cudaMalloc(&lane.cs, kBatch * sizeof(float*)));
  CHECK(cudaMemcpy(lane.as, as.data(), kBatch * sizeof(float*), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(lane.bs, bs.data(), kBatch * sizeof(float*), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(lane.cs, cs.data(), kBatch * sizeof(float*), cudaMemcpyHostToDevice));
  CHECK(cudaMalloc(&lane.words, (1 << 16) * sizeof(unsigned)));
  number_kernel<<<256, 256, 0, lane.stream>>>(lane.words, 1 << 16);
  CHECK(cudaGetLastError());
  return lane;
}

}  // namespace

int main() {
  std::vector<Lane> lanes;
  for (unsigned i = 0; i < kStreams; ++i) lanes.push_back(make_lane(i * 1000));
  CHECK(cudaDeviceSynchronize());
  const float one = 1;
  for (unsigned round = 0; round < kRounds; ++round)
    for (Lane& lane : lanes) {
      CHECK_ZERO(cublasSgemmBatched(lane.handle, CUBLAS_OP_N, CUBLAS_OP_T, kSize, kSize, kSize, &one, lane.as, kSize,
                                    lane.bs, kSize, &one, lane.cs, kSize, kBatch));
      launch_mix(lane.words, 1 << 16, round, 100, lane.stream);
      CHECK_ZERO(cublasSgemmStridedBatched(lane.handle, CUBLAS_OP_T, CUBLAS_OP_N, kSize, kSize, kSize, &one, lane.a,
                                           kSize, kMatrix, lane.b, kSize, kMatrix, &one, lane.c, kSize, kMatrix,
                                           kBatch));
    }
  CHECK(cudaDeviceSynchronize());
  for (unsigned i = 0; i < kStreams; ++i) {
    std::vector<float> got(kMatrix * kBatch);
    CHECK(cudaMemcpy(got.data(), lanes[i].c, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (std::size_t sample = 0; sample < 200; ++sample) {
      const std::size_t of = sample % kBatch * kMatrix, row = sample * 31 % kSize, column = sample * 17 % kSize;
      float sum = 0;
      for (std::size_t k = 0; k < kSize; ++k)
        sum += element(of + k * kSize + row, i * 1000) * element(of + k * kSize + column, i * 1000 + 77) +
               element(of + row * kSize + k, i * 1000) * element(of + column * kSize + k, i * 1000 + 77);
      if (got[of + column * kSize + row] != kRounds * sum) ++wrong;
    }
    std::printf("stream %u %s\n", i, wrong == 0 ? "right" : "WRONG");
    print_hash("products", got.data(), got.size() * sizeof(float));
    checked_results("words", lanes[i].words, 1 << 16, kRounds, 100);
    CHECK_ZERO(cublasDestroy(lanes[i].handle));
    CHECK(cudaStreamDestroy(lanes[i].stream));
  }
  return 0;
}

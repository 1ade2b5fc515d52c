// compat: warpgroup products of matrices in shared memory: wgmma.mma_async
// arch: 90a
#include <cuda_fp16.h>

#include "work.h"

constexpr int kM = 64, kN = 8, kK = 16;

/// A matrix in shared memory without swizzling, made of tiles of 8 rows of 16 bytes: `lead` bytes from one to the next
/// along k, `stride` bytes from one to the next across.
__device__ std::uint64_t descriptor(const void* matrix, std::uint64_t lead, std::uint64_t stride) {
  const std::uint64_t at = __cvta_generic_to_shared(matrix);
  return (at & 0x3ffff) >> 4 | (lead >> 4) << 16 | (stride >> 4) << 32;
}

__global__ void __launch_bounds__(128) multiply(const __half* a, const __half* b, float* c, int repeats) {
  __shared__ __align__(128) __half left[kM * kK];
  __shared__ __align__(128) __half right[kN * kK];
  a += blockIdx.x % 7 * kM * kK;
  b += blockIdx.x % 5 * kN * kK;
  c += blockIdx.x * kM * kN;
  // Element (row, k) is in tile (row / 8, k / 8); tiles that follow each other along k lie 128 bytes apart.
  for (int i = threadIdx.x; i < kM * kK; i += 128) {
    const int row = i / kK, k = i % kK;
    left[(row / 8 * 2 + k / 8) * 64 + row % 8 * 8 + k % 8] = a[i];
  }
  for (int i = threadIdx.x; i < kN * kK; i += 128) right[i % kK / 8 * 64 + i / kK * 8 + i % 8] = b[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float* mine = c + (warp * 16 + lane / 4) * kN + lane % 4 * 2;
  float sum[4] = {mine[0], mine[1], mine[8 * kN], mine[8 * kN + 1]};
  const std::uint64_t a_at = descriptor(left, 128, 256), b_at = descriptor(right, 128, 256);
#pragma unroll 1
  for (int k = 0; k < repeats; ++k) {
    asm volatile("wgmma.fence.sync.aligned;" : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])::"memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "l"(a_at), "l"(b_at)
                 : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])::"memory");
  }
  mine[0] = sum[0], mine[1] = sum[1], mine[8 * kN] = sum[2], mine[8 * kN + 1] = sum[3];
}

int main() {
  const int blocks = 4000, rounds = 60, repeats = 100;
  std::vector<__half> a(7 * kM * kK), b(5 * kN * kK);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(mix(i, 2) >> 30) - 2);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(mix(i, 3) >> 30) - 2);
  float* c = zeros<float>(static_cast<std::size_t>(blocks) * kM * kN);
  const __half *on_a = on_device(a), *on_b = on_device(b);
  for (int round = 0; round < rounds; ++round) multiply<<<blocks, 128>>>(on_a, on_b, c, repeats);
  CHECK(cudaGetLastError());
  const std::vector<float> got = on_host(c, static_cast<std::size_t>(blocks) * kM * kN);
  for (int block = 0; block < blocks; block += 101) {
    for (int i = 0; i < kM * kN; ++i) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) {
        sum += static_cast<float>(a[(block % 7 * kM + i / kN) * kK + k]) *
               static_cast<float>(b[(block % 5 * kN + i % kN) * kK + k]);
      }
      must(got[block * kM * kN + i] == sum * rounds * repeats, "a product");
    }
  }
  print_hash("wgmma", got.data(), got.size() * sizeof(float));
}

// compat: cp.async.bulk into shared memory behind an mbarrier in two phases, and back to global memory
#include "barriers.h"

constexpr int kWords = 1024;

__global__ void stream_through(std::uint32_t* values, int pieces, int steps) {
  __shared__ __align__(128) std::uint32_t buffer[kWords];
  __shared__ std::uint64_t barrier;
  if (threadIdx.x == 0) init_barrier(&barrier, 1);
  __syncthreads();
  for (int piece = 0; piece < pieces; ++piece) {
    std::uint32_t* at = values + (static_cast<std::size_t>(blockIdx.x) * pieces + piece) * kWords;
    if (threadIdx.x == 0) {
      arrive_expecting(&barrier, kWords * 4);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       shared_address(buffer)),
                   "l"(__cvta_generic_to_global(at)), "r"(kWords * 4), "r"(shared_address(&barrier))
                   : "memory");
    }
    wait_for(&barrier, piece & 1);
    for (int k = threadIdx.x; k < kWords; k += blockDim.x) buffer[k] = mix(buffer[k] + k + piece, steps);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(at)),
                   "r"(shared_address(buffer)), "r"(kWords * 4)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
  }
}

int main() {
  const int blocks = 1056, pieces = 3, rounds = 150, steps = 100;
  const std::size_t count = static_cast<std::size_t>(blocks) * pieces * kWords;
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < rounds; ++round) stream_through<<<blocks, 256>>>(values, pieces, steps);
  CHECK(cudaGetLastError());
  const std::vector<std::uint32_t> got = on_host(values, count);
  for (std::size_t i = 0; i < count; i += 9973) {
    std::uint32_t value = 0;
    const auto salt = static_cast<std::uint32_t>(i % kWords + i / kWords % pieces);
    for (int round = 0; round < rounds; ++round) value = mix(value + salt, steps);
    must(got[i] == value, "bulk copies");
  }
  print_hash("bulk", got.data(), count * sizeof(std::uint32_t));
}

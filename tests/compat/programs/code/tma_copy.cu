// compat: tensor copies (TMA) in both directions by a tensor map that is a parameter
// arch: 90a
#include <cuda.h>

#include "barriers.h"

constexpr int kWidth = 1024, kHeight = 512, kBoxWidth = 32, kBoxHeight = 16;

__global__ void change(const __grid_constant__ CUtensorMap map, int steps) {
  __shared__ __align__(128) std::uint32_t box[kBoxHeight * kBoxWidth];
  __shared__ std::uint64_t barrier;
  const int x = blockIdx.x * kBoxWidth, y = blockIdx.y * kBoxHeight;
  const auto at = reinterpret_cast<std::uint64_t>(&map);
  if (threadIdx.x == 0) init_barrier(&barrier, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expecting(&barrier, sizeof box);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(shared_address(box)),
        "l"(at), "r"(x), "r"(y), "r"(shared_address(&barrier))
        : "memory");
  }
  wait_for(&barrier, 0);
  for (int i = threadIdx.x; i < kBoxHeight * kBoxWidth; i += blockDim.x) {
    box[i] = mix(box[i] + (y + i / kBoxWidth) * kWidth + x + i % kBoxWidth, steps);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(at), "r"(x),
                 "r"(y), "r"(shared_address(box))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
}

int main() {
  const int steps = 500, rounds = 200, count = kWidth * kHeight;
  std::uint32_t* values = zeros<std::uint32_t>(count);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
  must(found == cudaDriverEntryPointSuccess, "the driver has cuTensorMapEncodeTiled");
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  alignas(64) CUtensorMap map{};
  const cuuint64_t sizes[] = {kWidth, kHeight}, strides[] = {kWidth * 4};
  const cuuint32_t box[] = {kBoxWidth, kBoxHeight}, steps_of_elements[] = {1, 1};
  CHECK_ZERO(encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, values, sizes, strides, box, steps_of_elements,
                    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  for (int round = 0; round < rounds; ++round) {
    change<<<dim3(kWidth / kBoxWidth, kHeight / kBoxHeight), 128>>>(map, steps);
  }
  CHECK(cudaGetLastError());
  const std::vector<std::uint32_t> got = on_host(values, count);
  for (int i = 0; i < count; i += 9973) {
    std::uint32_t value = 0;
    for (int round = 0; round < rounds; ++round) value = mix(value + i, steps);
    must(got[i] == value, "tensor copies");
  }
  print_hash("tensor", got.data(), count * sizeof(std::uint32_t));
}

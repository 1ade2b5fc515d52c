// compat: tensor cores through inline PTX: mma.sync of half and of 8-bit integers, with ldmatrix
#include <cuda_fp16.h>

#include "work.h"

/// 16x8 products of a 16x16 and a 16x8 matrix (by columns), as each warp's share of `repeats` of them.
__global__ void half_products(const __half* a, const __half* b, float* c, int repeats) {
  __shared__ __align__(16) __half tile[16 * 16];
  const int lane = threadIdx.x, group = lane / 4, pair = lane % 4;
  a += blockIdx.x % 7 * 256;
  b += blockIdx.x % 5 * 128;
  c += blockIdx.x * 128;
  for (int i = lane; i < 256; i += 32) tile[i] = a[i];
  __syncwarp();
  std::uint32_t left[4], right[2];
  const auto row = static_cast<std::uint32_t>(__cvta_generic_to_shared(&tile[lane % 16 * 16 + lane / 16 * 8]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(left[0]), "=r"(left[1]), "=r"(left[2]), "=r"(left[3])
               : "r"(row)
               : "memory");
  for (int i = 0; i < 2; ++i) right[i] = *reinterpret_cast<const std::uint32_t*>(&b[group * 16 + pair * 2 + i * 8]);
  float sum[4] = {c[group * 8 + pair * 2], c[group * 8 + pair * 2 + 1], c[(group + 8) * 8 + pair * 2],
                  c[(group + 8) * 8 + pair * 2 + 1]};
  for (int k = 0; k < repeats; ++k) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  }
  for (int i = 0; i < 4; ++i) c[(group + i / 2 * 8) * 8 + pair * 2 + i % 2] = sum[i];
}

__global__ void integer_products(const signed char* a, const signed char* b, int* c, int repeats) {
  const int lane = threadIdx.x, group = lane / 4, four = lane % 4;
  a += blockIdx.x % 7 * 512;
  b += blockIdx.x % 5 * 256;
  c += blockIdx.x * 128;
  std::uint32_t left[4], right[2];
  for (int i = 0; i < 4; ++i) {
    left[i] = *reinterpret_cast<const std::uint32_t*>(&a[(group + i % 2 * 8) * 32 + i / 2 * 16 + four * 4]);
  }
  for (int i = 0; i < 2; ++i) right[i] = *reinterpret_cast<const std::uint32_t*>(&b[group * 32 + i * 16 + four * 4]);
  int sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = c[(group + i / 2 * 8) * 8 + four * 2 + i % 2];
  for (int k = 0; k < repeats; ++k) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  }
  for (int i = 0; i < 4; ++i) c[(group + i / 2 * 8) * 8 + four * 2 + i % 2] = sum[i];
}

template <class In, class Out>
void check(const char* name, const std::vector<In>& a, const std::vector<In>& b, const Out* c, int blocks, int depth,
           int times) {
  const std::vector<Out> got = on_host(c, blocks * 128);
  for (int block = 0; block < blocks; block += 101) {
    for (int i = 0; i < 128; ++i) {
      int sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += static_cast<int>(static_cast<float>(a[block % 7 * 16 * depth + i / 8 * depth + k])) *
               static_cast<int>(static_cast<float>(b[block % 5 * 8 * depth + i % 8 * depth + k]));
      }
      must(got[block * 128 + i] == static_cast<Out>(sum * times), name);
    }
  }
  print_hash(name, got.data(), got.size() * sizeof(Out));
}

int main() {
  const int blocks = 20000, rounds = 40, repeats = 200;
  std::vector<__half> a(7 * 256), b(5 * 128);
  std::vector<signed char> c(7 * 512), d(5 * 256);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(mix(i, 2) >> 30) - 2);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(mix(i, 3) >> 30) - 2);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<signed char>(mix(i, 4) >> 24);
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = static_cast<signed char>(static_cast<int>(mix(i, 5) >> 30) - 2);
  float* sums = zeros<float>(blocks * 128);
  int* whole = zeros<int>(blocks * 128);
  const __half *on_a = on_device(a), *on_b = on_device(b);
  const signed char *on_c = on_device(c), *on_d = on_device(d);
  for (int round = 0; round < rounds; ++round) {
    half_products<<<blocks, 32>>>(on_a, on_b, sums, repeats);
    integer_products<<<blocks, 32>>>(on_c, on_d, whole, repeats);
  }
  CHECK(cudaGetLastError());
  check("half", a, b, sums, blocks, 16, rounds * repeats);
  check("8-bit integers", c, d, whole, blocks, 32, rounds * repeats);
}

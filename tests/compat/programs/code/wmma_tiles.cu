// compat: tensor cores through wmma: half with float sums, and 8-bit integers
#include <cuda_fp16.h>
#include <mma.h>

#include "work.h"

using namespace nvcuda;

constexpr int kSize = 128, kTiles = kSize / 16;

template <class In, class Out>
__global__ void multiply(const In* a, const In* b, Out* c) {
  const int batch = blockIdx.z, row = blockIdx.y * 16, column = blockIdx.x * 16;
  const In *from_a = a + batch % 4 * kSize * kSize, *from_b = b + batch % 3 * kSize * kSize;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Out> sum;
  wmma::fill_fragment(sum, static_cast<Out>(0));
  for (int k = 0; k < kSize; k += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, In, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, In, wmma::col_major> right;
    wmma::load_matrix_sync(left, from_a + row * kSize + k, kSize);
    wmma::load_matrix_sync(right, from_b + column * kSize + k, kSize);
    wmma::mma_sync(sum, left, right, sum);
  }
  Out* to = c + static_cast<std::size_t>(batch) * kSize * kSize + row * kSize + column;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Out> before;
  wmma::load_matrix_sync(before, to, kSize, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] += before.x[i];
  wmma::store_matrix_sync(to, sum, kSize, wmma::mem_row_major);
}

template <class In, class Out>
void test(const char* name) {
  const int batches = 64, rounds = 100;
  std::vector<In> a(4 * kSize * kSize), b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {  // whole numbers from -4 to 3: sums stay exact
    a[i] = static_cast<In>(static_cast<int>(mix(static_cast<unsigned>(i), 2) >> 29) - 4);
    b[i] = static_cast<In>(static_cast<int>(mix(static_cast<unsigned>(i), 3) >> 29) - 4);
  }
  const std::size_t count = static_cast<std::size_t>(batches) * kSize * kSize;
  Out* c = zeros<Out>(count);
  const In *on_a = on_device(a), *on_b = on_device(b);
  for (int round = 0; round < rounds; ++round) multiply<In, Out><<<dim3(kTiles, kTiles, batches), 32>>>(on_a, on_b, c);
  CHECK(cudaGetLastError());
  const std::vector<Out> got = on_host(c, count);
  for (std::size_t i = 0; i < count; i += 4099) {
    const int batch = static_cast<int>(i / (kSize * kSize)), row = i / kSize % kSize, column = i % kSize;
    int sum = 0;
    for (int k = 0; k < kSize; ++k) {
      sum += static_cast<int>(static_cast<float>(a[(batch % 4 * kSize + row) * kSize + k])) *
             static_cast<int>(static_cast<float>(b[(batch % 3 * kSize + column) * kSize + k]));
    }
    must(got[i] == static_cast<Out>(sum * rounds), name);
  }
  print_hash(name, got.data(), count * sizeof(Out));
}

int main() {
  test<__half, float>("half");
  test<signed char, int>("8-bit integers");
}

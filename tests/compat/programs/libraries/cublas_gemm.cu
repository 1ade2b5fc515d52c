// compat: cuBLAS matrix products of several sizes and types
// libs: cublas
// builds: both shared
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <vector>

#include "check.h"

namespace {

constexpr int kRounds = 20;

/// A small integer, so that every product and sum is exact in any order.
int element(unsigned seed, int row, int column) {
  const unsigned x = (static_cast<unsigned>(row) * 2654435761u) ^ (static_cast<unsigned>(column) * 40503u + seed * 97u);
  return static_cast<int>((x >> 11) % 7) - 3;
}

template <typename T>
T* matrix(unsigned seed, int rows, int columns, bool transposed = false) {
  std::vector<T> host(static_cast<std::size_t>(rows) * columns);
  for (int c = 0; c < columns; ++c)
    for (int r = 0; r < rows; ++r) {
      const std::size_t at =
          transposed ? static_cast<std::size_t>(r) * columns + c : static_cast<std::size_t>(c) * rows + r;
      host[at] = static_cast<T>(static_cast<float>(element(seed, r, c)));
    }
  T* device = nullptr;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

/// One product of m x k and k x n, `kRounds` times, some of its elements checked.
template <typename In, typename Out, typename Scalar>
void product(cublasHandle_t handle, const char* name, int m, int n, int k, cudaDataType in, cudaDataType out,
             cublasComputeType_t compute, bool transposed = false) {
  In* a = matrix<In>(1, m, k, transposed);
  In* b = matrix<In>(2, k, n);
  Out* c = nullptr;
  const std::size_t size = static_cast<std::size_t>(m) * n;
  CHECK(cudaMalloc(&c, size * sizeof(Out)));
  CHECK(cudaMemset(c, 0, size * sizeof(Out)));
  const Scalar one = 1, zero = 0;
  for (int round = 0; round < kRounds; ++round)
    CHECK_ZERO(cublasGemmEx(handle, transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, in,
                            transposed ? k : m, b, in, k, round == 0 ? &zero : &one, c, out, m, compute,
                            CUBLAS_GEMM_DEFAULT));
  std::vector<Out> got(size);
  CHECK(cudaMemcpy(got.data(), c, size * sizeof(Out), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (unsigned sample = 0; sample < 200; ++sample) {
    const int row = static_cast<int>(sample * 7919u % static_cast<unsigned>(m));
    const int column = static_cast<int>(sample * 104729u % static_cast<unsigned>(n));
    long long sum = 0;
    for (int i = 0; i < k; ++i) sum += element(1, row, i) * element(2, i, column);
    if (static_cast<double>(got[static_cast<std::size_t>(column) * m + row]) != static_cast<double>(kRounds * sum))
      ++wrong;
  }
  std::printf("%s %dx%dx%d %s\n", name, m, n, k, wrong == 0 ? "right" : "WRONG");
  print_hash(name, got.data(), size * sizeof(Out));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
}

}  // namespace

int main() {
  cublasHandle_t handle;
  CHECK_ZERO(cublasCreate(&handle));
  for (const int size : {16, 64, 200, 1024, 2048})
    product<float, float, float>(handle, "sgemm", size, size, size, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  product<float, float, float>(handle, "sgemm", 33, 1000, 517, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  product<float, float, float>(handle, "split-k", 64, 64, 8192, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  for (const int size : {128, 1024})
    product<double, double, double>(handle, "dgemm", size, size, size, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F);
  for (const int size : {128, 2048}) {
    product<float, float, float>(handle, "tf32", size, size, size, CUDA_R_32F, CUDA_R_32F,
                                 CUBLAS_COMPUTE_32F_FAST_TF32);
    product<__half, float, float>(handle, "half", size, size, size, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
    product<signed char, int, int>(handle, "int8", size, size, size, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, true);
  }
  CHECK_ZERO(cublasDestroy(handle));
  return 0;
}

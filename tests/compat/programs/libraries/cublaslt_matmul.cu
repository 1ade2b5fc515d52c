// compat: cuBLASLt matrix products with an epilogue, algorithms chosen by its heuristic
// libs: cublasLt
// builds: both shared
#include <cublasLt.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t kWorkspace = 32 << 20;

int element(unsigned seed, int row, int column) {
  return static_cast<int>(
             ((static_cast<unsigned>(row) * 2654435761u) ^ (static_cast<unsigned>(column) * 40503u + seed)) >> 12) %
             5 -
         2;
}

__half* matrix(unsigned seed, int rows, int columns) {
  std::vector<__half> host(static_cast<std::size_t>(rows) * columns);
  for (int c = 0; c < columns; ++c)
    for (int r = 0; r < rows; ++r)
      host[static_cast<std::size_t>(c) * rows + r] = __float2half(static_cast<float>(element(seed, r, c)));
  __half* device = nullptr;
  CHECK(cudaMalloc(&device, host.size() * sizeof(__half)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(__half), cudaMemcpyHostToDevice));
  return device;
}

/// max(0, A B + bias) of half precision, left in single precision.
void product(cublasLtHandle_t handle, int m, int n, int k, void* workspace) {
  __half* a = matrix(1, m, k);
  __half* b = matrix(2, k, n);
  float *c = nullptr, *bias = nullptr;
  const std::size_t size = static_cast<std::size_t>(m) * n;
  CHECK(cudaMalloc(&c, size * sizeof(float)));
  CHECK(cudaMalloc(&bias, m * sizeof(float)));
  std::vector<float> biases(static_cast<std::size_t>(m));
  for (int i = 0; i < m; ++i) biases[static_cast<std::size_t>(i)] = static_cast<float>(i % 11 - 5);
  CHECK(cudaMemcpy(bias, biases.data(), biases.size() * sizeof(float), cudaMemcpyHostToDevice));

  cublasLtMatmulDesc_t operation;
  CHECK_ZERO(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  CHECK_ZERO(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  CHECK_ZERO(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  const cudaDataType_t bias_type = CUDA_R_32F;
  CHECK_ZERO(
      cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type));
  cublasLtMatrixLayout_t layout_a, layout_b, layout_c;
  CHECK_ZERO(cublasLtMatrixLayoutCreate(&layout_a, CUDA_R_16F, m, k, m));
  CHECK_ZERO(cublasLtMatrixLayoutCreate(&layout_b, CUDA_R_16F, k, n, k));
  CHECK_ZERO(cublasLtMatrixLayoutCreate(&layout_c, CUDA_R_32F, m, n, m));
  cublasLtMatmulPreference_t preference;
  CHECK_ZERO(cublasLtMatmulPreferenceCreate(&preference));
  CHECK_ZERO(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                                  sizeof kWorkspace));
  cublasLtMatmulHeuristicResult_t found[4];
  int count = 0;
  CHECK_ZERO(cublasLtMatmulAlgoGetHeuristic(handle, operation, layout_a, layout_b, layout_c, layout_c, preference, 4,
                                            found, &count));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  const float one = 1, zero = 0;
  for (int round = 0; round < 40; ++round)
    CHECK_ZERO(cublasLtMatmul(handle, operation, &one, a, layout_a, b, layout_b, &zero, c, layout_c, c, layout_c,
                              &found[round % count].algo, workspace, kWorkspace, stream));
  CHECK(cudaStreamSynchronize(stream));

  std::vector<float> got(size);
  CHECK(cudaMemcpy(got.data(), c, size * sizeof(float), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (unsigned sample = 0; sample < 200; ++sample) {
    const int row = static_cast<int>(sample * 7919u % static_cast<unsigned>(m));
    const int column = static_cast<int>(sample * 104729u % static_cast<unsigned>(n));
    int sum = row % 11 - 5;
    for (int i = 0; i < k; ++i) sum += element(1, row, i) * element(2, i, column);
    if (got[static_cast<std::size_t>(column) * m + row] != static_cast<float>(std::max(sum, 0))) ++wrong;
  }
  std::printf("%dx%dx%d %s\n", m, n, k, wrong == 0 ? "right" : "WRONG");
  print_hash("product", got.data(), size * sizeof(float));
  CHECK_ZERO(cublasLtMatmulPreferenceDestroy(preference));
  for (const cublasLtMatrixLayout_t layout : {layout_a, layout_b, layout_c})
    CHECK_ZERO(cublasLtMatrixLayoutDestroy(layout));
  CHECK_ZERO(cublasLtMatmulDescDestroy(operation));
  CHECK(cudaStreamDestroy(stream));
  for (void* memory : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(c), static_cast<void*>(bias)})
    CHECK(cudaFree(memory));
}

}  // namespace

int main() {
  cublasLtHandle_t handle;
  CHECK_ZERO(cublasLtCreate(&handle));
  void* workspace = nullptr;
  CHECK(cudaMalloc(&workspace, kWorkspace));
  product(handle, 64, 64, 64, workspace);
  product(handle, 512, 256, 1024, workspace);
  product(handle, 2048, 2048, 2048, workspace);
  CHECK(cudaFree(workspace));
  CHECK_ZERO(cublasLtDestroy(handle));
  return 0;
}

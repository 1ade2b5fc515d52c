// compat: cuSPARSE products of a sparse matrix with vectors and with a dense matrix
// libs: cusparse
// builds: both shared
#include <cusparse.h>

#include "sparse.h"

namespace {

constexpr int kSide = 400, kDense = 16, kRounds = 50;

double value_at(std::size_t i) {
  return static_cast<double>((i * 2654435761u >> 10) % 19) - 9;
}

std::vector<double> expected(const Stencil& matrix, const std::vector<double>& x, std::size_t from) {
  std::vector<double> y(static_cast<std::size_t>(matrix.rows));
  for (std::size_t row = 0; row < y.size(); ++row)
    for (int at = matrix.offsets[row]; at < matrix.offsets[row + 1]; ++at)
      y[row] += matrix.values[static_cast<std::size_t>(at)] *
                x[from + static_cast<std::size_t>(matrix.columns[static_cast<std::size_t>(at)])];
  return y;
}

}  // namespace

int main() {
  const Stencil host = stencil(kSide);
  const std::size_t rows = static_cast<std::size_t>(host.rows);
  int* offsets = on_device(host.offsets);
  int* columns = on_device(host.columns);
  double* values = on_device(host.values);
  std::vector<double> x(rows * kDense);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = value_at(i);
  double* device_x = on_device(x);
  double* device_y = on_device(std::vector<double>(rows * kDense));

  cusparseHandle_t handle;
  CHECK_ZERO(cusparseCreate(&handle));
  cusparseSpMatDescr_t matrix;
  CHECK_ZERO(cusparseCreateCsr(&matrix, host.rows, host.rows, static_cast<std::int64_t>(host.values.size()), offsets,
                               columns, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                               CUDA_R_64F));
  const double one = 1, zero = 0;
  for (const cusparseSpMVAlg_t algorithm :
       {CUSPARSE_SPMV_ALG_DEFAULT, CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2}) {
    cusparseDnVecDescr_t in, out;
    CHECK_ZERO(cusparseCreateDnVec(&in, host.rows, device_x, CUDA_R_64F));
    CHECK_ZERO(cusparseCreateDnVec(&out, host.rows, device_y, CUDA_R_64F));
    std::size_t bytes = 0;
    CHECK_ZERO(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in, &zero, out,
                                       CUDA_R_64F, algorithm, &bytes));
    void* buffer = nullptr;
    CHECK(cudaMalloc(&buffer, bytes + 1));
    for (int round = 0; round < kRounds; ++round)
      CHECK_ZERO(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in, round == 0 ? &zero : &one,
                              out, CUDA_R_64F, algorithm, buffer));
    std::vector<double> y(rows);
    CHECK(cudaMemcpy(y.data(), device_y, rows * sizeof(double), cudaMemcpyDeviceToHost));
    const std::vector<double> wanted = expected(host, x, 0);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < rows; ++i) wrong += y[i] != kRounds * wanted[i];
    std::printf("algorithm %d %s\n", static_cast<int>(algorithm), wrong == 0 ? "right" : "WRONG");
    print_hash("vector", y.data(), rows * sizeof(double));
    CHECK_ZERO(cusparseDestroyDnVec(in));
    CHECK_ZERO(cusparseDestroyDnVec(out));
    CHECK(cudaFree(buffer));
  }

  cusparseDnMatDescr_t in, out;
  CHECK_ZERO(cusparseCreateDnMat(&in, host.rows, kDense, host.rows, device_x, CUDA_R_64F, CUSPARSE_ORDER_COL));
  CHECK_ZERO(cusparseCreateDnMat(&out, host.rows, kDense, host.rows, device_y, CUDA_R_64F, CUSPARSE_ORDER_COL));
  std::size_t bytes = 0;
  CHECK_ZERO(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                     matrix, in, &zero, out, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, &bytes));
  void* buffer = nullptr;
  CHECK(cudaMalloc(&buffer, bytes + 1));
  for (int round = 0; round < kRounds; ++round)
    CHECK_ZERO(cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix,
                            in, round == 0 ? &zero : &one, out, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, buffer));
  std::vector<double> y(rows * kDense);
  CHECK(cudaMemcpy(y.data(), device_y, y.size() * sizeof(double), cudaMemcpyDeviceToHost));
  std::size_t wrong = 0;
  for (std::size_t column = 0; column < kDense; ++column) {
    const std::vector<double> wanted = expected(host, x, column * rows);
    for (std::size_t i = 0; i < rows; ++i) wrong += y[column * rows + i] != kRounds * wanted[i];
  }
  std::printf("dense %s\n", wrong == 0 ? "right" : "WRONG");
  print_hash("dense", y.data(), y.size() * sizeof(double));
  CHECK_ZERO(cusparseDestroySpMat(matrix));
  CHECK_ZERO(cusparseDestroy(handle));
  return 0;
}

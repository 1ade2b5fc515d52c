// compat: a conjugate gradient preconditioned by an incomplete LU, with cuSPARSE and cuBLAS
// libs: cusparse cublas
// flags: -diag-suppress=1444 -Wno-deprecated-declarations
// builds: both shared
#include <cublas_v2.h>
#include <cusparse.h>

#include <cmath>

#include "sparse.h"

namespace {

constexpr int kSide = 128, kMost = 500;
constexpr cusparseOperation_t kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;

cusparseHandle_t sparse;
cublasHandle_t blas;

/// A solve with one of the triangles that the incomplete LU left.
struct Triangle {
  cusparseSpMatDescr_t matrix;
  cusparseSpSVDescr_t solver;

  void analyse(int rows, int entries, int* offsets, int* columns, double* values, cusparseFillMode_t fill,
               cusparseDiagType_t diagonal, cusparseDnVecDescr_t in, cusparseDnVecDescr_t out) {
    const double one = 1;
    CHECK_ZERO(cusparseCreateCsr(&matrix, rows, rows, entries, offsets, columns, values, CUSPARSE_INDEX_32I,
                                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    CHECK_ZERO(cusparseSpMatSetAttribute(matrix, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill));
    CHECK_ZERO(cusparseSpMatSetAttribute(matrix, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal));
    CHECK_ZERO(cusparseSpSV_createDescr(&solver));
    std::size_t bytes = 0;
    void* buffer = nullptr;
    CHECK_ZERO(cusparseSpSV_bufferSize(sparse, kPlain, &one, matrix, in, out, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT,
                                       solver, &bytes));
    CHECK(cudaMalloc(&buffer, bytes + 1));
    CHECK_ZERO(cusparseSpSV_analysis(sparse, kPlain, &one, matrix, in, out, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT,
                                     solver, buffer));
  }

  void solve(cusparseDnVecDescr_t in, cusparseDnVecDescr_t out) {
    const double one = 1;
    CHECK_ZERO(
        cusparseSpSV_solve(sparse, kPlain, &one, matrix, in, out, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, solver));
  }
};

void incomplete_lu(int rows, int entries, int* offsets, int* columns, double* values) {
  cusparseMatDescr_t description;
  csrilu02Info_t info;
  CHECK_ZERO(cusparseCreateMatDescr(&description));
  CHECK_ZERO(cusparseCreateCsrilu02Info(&info));
  int bytes = 0, pivot = 0;
  void* buffer = nullptr;
  CHECK_ZERO(cusparseDcsrilu02_bufferSize(sparse, rows, entries, description, values, offsets, columns, info, &bytes));
  CHECK(cudaMalloc(&buffer, static_cast<std::size_t>(bytes) + 1));
  CHECK_ZERO(cusparseDcsrilu02_analysis(sparse, rows, entries, description, values, offsets, columns, info,
                                        CUSPARSE_SOLVE_POLICY_USE_LEVEL, buffer));
  CHECK_ZERO(cusparseDcsrilu02(sparse, rows, entries, description, values, offsets, columns, info,
                               CUSPARSE_SOLVE_POLICY_USE_LEVEL, buffer));
  std::printf("zero pivot %s\n",
              cusparseXcsrilu02_zeroPivot(sparse, info, &pivot) == CUSPARSE_STATUS_ZERO_PIVOT ? "yes" : "no");
  CHECK(cudaFree(buffer));
}

double dot(int rows, const double* a, const double* b) {
  double result = 0;
  CHECK_ZERO(cublasDdot(blas, rows, a, 1, b, 1, &result));
  return result;
}

}  // namespace

int main() {
  const Stencil host = stencil(kSide);
  const int rows = host.rows, entries = static_cast<int>(host.values.size());
  const std::size_t bytes = static_cast<std::size_t>(rows) * sizeof(double);
  CHECK_ZERO(cusparseCreate(&sparse));
  CHECK_ZERO(cublasCreate(&blas));
  int* offsets = on_device(host.offsets);
  int* columns = on_device(host.columns);
  double* values = on_device(host.values);
  double* factors = on_device(host.values);
  // The solution is 1 everywhere, and x begins with 0, so that the residual begins with the right side.
  std::vector<double> right(static_cast<std::size_t>(rows));
  for (std::size_t row = 0; row < right.size(); ++row)
    for (int at = host.offsets[row]; at < host.offsets[row + 1]; ++at)
      right[row] += host.values[static_cast<std::size_t>(at)];
  double* r = on_device(right);
  double *x = nullptr, *p = nullptr, *ap = nullptr, *y = nullptr, *z = nullptr;
  for (double** vector : {&x, &p, &ap, &y, &z}) {
    CHECK(cudaMalloc(vector, bytes));
    CHECK(cudaMemset(*vector, 0, bytes));
  }
  cusparseDnVecDescr_t dense_r, dense_p, dense_ap, dense_y, dense_z;
  CHECK_ZERO(cusparseCreateDnVec(&dense_r, rows, r, CUDA_R_64F));
  CHECK_ZERO(cusparseCreateDnVec(&dense_p, rows, p, CUDA_R_64F));
  CHECK_ZERO(cusparseCreateDnVec(&dense_ap, rows, ap, CUDA_R_64F));
  CHECK_ZERO(cusparseCreateDnVec(&dense_y, rows, y, CUDA_R_64F));
  CHECK_ZERO(cusparseCreateDnVec(&dense_z, rows, z, CUDA_R_64F));

  incomplete_lu(rows, entries, offsets, columns, factors);
  Triangle lower, upper;
  lower.analyse(rows, entries, offsets, columns, factors, CUSPARSE_FILL_MODE_LOWER, CUSPARSE_DIAG_TYPE_UNIT, dense_r,
                dense_y);
  upper.analyse(rows, entries, offsets, columns, factors, CUSPARSE_FILL_MODE_UPPER, CUSPARSE_DIAG_TYPE_NON_UNIT,
                dense_y, dense_z);
  cusparseSpMatDescr_t matrix;
  CHECK_ZERO(cusparseCreateCsr(&matrix, rows, rows, entries, offsets, columns, values, CUSPARSE_INDEX_32I,
                               CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  const double one = 1, zero = 0;
  std::size_t product_bytes = 0;
  void* buffer = nullptr;
  CHECK_ZERO(cusparseSpMV_bufferSize(sparse, kPlain, &one, matrix, dense_p, &zero, dense_ap, CUDA_R_64F,
                                     CUSPARSE_SPMV_ALG_DEFAULT, &product_bytes));
  CHECK(cudaMalloc(&buffer, product_bytes + 1));

  int iterations = 0;
  double before = 1;
  const double first = dot(rows, r, r);
  while (iterations < kMost && dot(rows, r, r) > first * 1e-20) {
    lower.solve(dense_r, dense_y);
    upper.solve(dense_y, dense_z);
    const double now = dot(rows, r, z);
    const double beta = iterations == 0 ? 0 : now / before;
    before = now;
    CHECK_ZERO(cublasDscal(blas, rows, &beta, p, 1));
    CHECK_ZERO(cublasDaxpy(blas, rows, &one, z, 1, p, 1));
    CHECK_ZERO(cusparseSpMV(sparse, kPlain, &one, matrix, dense_p, &zero, dense_ap, CUDA_R_64F,
                            CUSPARSE_SPMV_ALG_DEFAULT, buffer));
    const double alpha = now / dot(rows, p, ap), minus = -alpha;
    CHECK_ZERO(cublasDaxpy(blas, rows, &alpha, p, 1, x, 1));
    CHECK_ZERO(cublasDaxpy(blas, rows, &minus, ap, 1, r, 1));
    ++iterations;
  }
  std::vector<double> got(static_cast<std::size_t>(rows));
  CHECK(cudaMemcpy(got.data(), x, bytes, cudaMemcpyDeviceToHost));
  double furthest = 0;
  for (const double value : got) furthest = std::fmax(furthest, std::fabs(value - 1));
  std::printf("iterations %d, residual %s, solution %s\n", iterations,
              dot(rows, r, r) <= first * 1e-20 ? "small" : "LARGE", furthest < 1e-6 ? "right" : "WRONG");
  CHECK_ZERO(cublasDestroy(blas));
  CHECK_ZERO(cusparseDestroy(sparse));
  return 0;
}

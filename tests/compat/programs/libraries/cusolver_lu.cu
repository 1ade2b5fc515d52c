// compat: cuSOLVER LU factorisation and solve, Cholesky, and a symmetric eigenvalue problem
// libs: cusolver
// builds: both shared
#include <cusolverDn.h>

#include <cmath>
#include <vector>

#include "check.h"

namespace {

/// Strongest on the diagonal, symmetric, and whole numbers.
double element(int row, int column, int size) {
  if (row == column) return 4.0 * size;
  const int low = row < column ? row : column, high = row < column ? column : row;
  return static_cast<double>((static_cast<unsigned>(low) * 7919u + static_cast<unsigned>(high) * 104729u) % 7) - 3;
}

template <typename T>
T* upload(const std::vector<T>& host) {
  T* device = nullptr;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

/// Prints whether x is i % 10 + 1 when it is rounded to six decimals.
void print_solution(const char* name, const double* device, int size) {
  std::vector<double> x(static_cast<std::size_t>(size));
  CHECK(cudaMemcpy(x.data(), device, x.size() * sizeof(double), cudaMemcpyDeviceToHost));
  int wrong = 0;
  std::vector<long long> rounded;
  for (int i = 0; i < size; ++i) {
    rounded.push_back(std::llround(x[static_cast<std::size_t>(i)] * 1e6));
    wrong += rounded.back() != (i % 10 + 1) * 1'000'000LL;
  }
  std::printf("%s %d %s\n", name, size, wrong == 0 ? "right" : "WRONG");
  print_hash(name, rounded.data(), rounded.size() * sizeof(long long));
}

void solve(cusolverDnHandle_t handle, int size) {
  const std::size_t side = static_cast<std::size_t>(size);
  std::vector<double> matrix(side * side), right(side);
  for (int column = 0; column < size; ++column)
    for (int row = 0; row < size; ++row) {
      matrix[static_cast<std::size_t>(column) * side + static_cast<std::size_t>(row)] = element(row, column, size);
      right[static_cast<std::size_t>(row)] += element(row, column, size) * (column % 10 + 1);
    }
  double* a = upload(matrix);
  double* b = upload(right);
  int* pivots = upload(std::vector<int>(side));
  int* info = upload(std::vector<int>(1));
  int words = 0, status = -1;
  CHECK_ZERO(cusolverDnDgetrf_bufferSize(handle, size, size, a, size, &words));
  double* work = upload(std::vector<double>(static_cast<std::size_t>(words) + 1));
  CHECK_ZERO(cusolverDnDgetrf(handle, size, size, a, size, work, pivots, info));
  CHECK_ZERO(cusolverDnDgetrs(handle, CUBLAS_OP_N, size, 1, a, size, pivots, b, size, info));
  CHECK(cudaMemcpy(&status, info, sizeof status, cudaMemcpyDeviceToHost));
  CHECK_ZERO(status);
  print_solution("lu", b, size);
  CHECK(cudaFree(work));

  CHECK(cudaMemcpy(a, matrix.data(), matrix.size() * sizeof(double), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, right.data(), right.size() * sizeof(double), cudaMemcpyHostToDevice));
  CHECK_ZERO(cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, size, a, size, &words));
  work = upload(std::vector<double>(static_cast<std::size_t>(words) + 1));
  CHECK_ZERO(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, size, a, size, work, words, info));
  CHECK_ZERO(cusolverDnDpotrs(handle, CUBLAS_FILL_MODE_LOWER, size, 1, a, size, b, size, info));
  CHECK(cudaMemcpy(&status, info, sizeof status, cudaMemcpyDeviceToHost));
  CHECK_ZERO(status);
  print_solution("cholesky", b, size);
  for (void* memory : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(work),
                       static_cast<void*>(pivots), static_cast<void*>(info)})
    CHECK(cudaFree(memory));
}

/// The eigenvalues' sum is the trace.
void eigenvalues(cusolverDnHandle_t handle, int size) {
  const std::size_t side = static_cast<std::size_t>(size);
  std::vector<double> matrix(side * side), values(side);
  for (int column = 0; column < size; ++column)
    for (int row = 0; row < size; ++row)
      matrix[static_cast<std::size_t>(column) * side + static_cast<std::size_t>(row)] = element(row, column, size);
  double* a = upload(matrix);
  double* w = upload(values);
  int* info = upload(std::vector<int>(1));
  int words = 0;
  CHECK_ZERO(
      cusolverDnDsyevd_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, size, a, size, w, &words));
  double* work = upload(std::vector<double>(static_cast<std::size_t>(words) + 1));
  CHECK_ZERO(
      cusolverDnDsyevd(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, size, a, size, w, work, words, info));
  CHECK(cudaMemcpy(values.data(), w, side * sizeof(double), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (const double value : values) sum += value;
  std::printf("eigenvalues %d %s\n", size, std::fabs(sum - 4.0 * size * size) < 1e-4 ? "right" : "WRONG");
}

}  // namespace

int main() {
  cusolverDnHandle_t handle;
  CHECK_ZERO(cusolverDnCreate(&handle));
  for (const int size : {50, 500, 1200}) solve(handle, size);
  eigenvalues(handle, 200);
  CHECK_ZERO(cusolverDnDestroy(handle));
  return 0;
}

// Float arithmetic with one meaning on both sides: included by kernels and by their CPU references. Every operation
// rounds once, to nearest, as written; compilers of neither side may fuse or reorder what is built from these. (The
// references are compiled with -ffp-contract=off.)
#pragma once

#ifdef __CUDACC__
#define BENCH_BOTH __device__ __forceinline__
#define BENCH_TABLE __constant__ const        // a table that both sides read
#define BENCH_CALLED __device__ __noinline__  // a function of its own
#else
#define BENCH_BOTH [[gnu::always_inline]] inline
#define BENCH_TABLE inline constexpr
#define BENCH_CALLED BENCH_BOTH
#endif

namespace gpuctl::bench {

#ifdef __CUDACC__
BENCH_BOTH float add(float a, float b) {
  return __fadd_rn(a, b);
}
BENCH_BOTH float subtract(float a, float b) {
  return __fsub_rn(a, b);
}
BENCH_BOTH float multiply(float a, float b) {
  return __fmul_rn(a, b);
}
BENCH_BOTH float divide(float a, float b) {
  return __fdiv_rn(a, b);
}
BENCH_BOTH float square_root(float a) {
  return __fsqrt_rn(a);
}
/// a * b + c, rounded once.
BENCH_BOTH float multiply_add(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
BENCH_BOTH int bits_of(float a) {
  return __float_as_int(a);
}
BENCH_BOTH float float_of(int bits) {
  return __int_as_float(bits);
}
#else
BENCH_BOTH float add(float a, float b) {
  return a + b;
}
BENCH_BOTH float subtract(float a, float b) {
  return a - b;
}
BENCH_BOTH float multiply(float a, float b) {
  return a * b;
}
BENCH_BOTH float divide(float a, float b) {
  return a / b;
}
BENCH_BOTH float square_root(float a) {
  return __builtin_sqrtf(a);
}
/// a * b + c, rounded once.
BENCH_BOTH float multiply_add(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
BENCH_BOTH int bits_of(float a) {
  return __builtin_bit_cast(int, a);
}
BENCH_BOTH float float_of(int bits) {
  return __builtin_bit_cast(float, bits);
}
#endif

}  // namespace gpuctl::bench

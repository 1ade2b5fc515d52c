#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
__device__ int g[4] = {1, 2, 3, 4};

__device__ int (*fp)(int);
__device__ __attribute__((noinline)) int h(int x) {
  return x + __nvvm_read_ptx_sreg_ctaid_x();
}
__global__ void k(int* a, int n) {
  int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
  __shared__ int s[32];
  if (i < n) {
    s[i & 31] = a[i];
    __syncthreads();
    a[i] = s[31 - (i & 31)] + h(n) + g[n & 3];
  }
  if (n == 77) a[3] = fp(n);
}
struct S {
  double a;
  char c[5];
};
__global__ void kk(S s, double* o) {
  o[0] = s.a + s.c[o[1] > 0 ? 1 : 3];
}

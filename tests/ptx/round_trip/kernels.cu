#include <cstdio>
__constant__ float coef[4] = {1.f, 2.f, 3.f, 4.f};
__device__ int table[3] = {1, 2, 3};
__device__ int* ptrs[2] = {table, table + 1};
__managed__ int mg = 4;
__device__ double dd;
struct P {
  int a;
  double b;
  char c[13];
};
extern __shared__ float dyn[];
__device__ __noinline__ float helper(float x, int k) {
  return x * blockIdx.x + table[k & 1] + gridDim.y;
}
typedef float (*fn)(float);
__device__ float f1(float x) {
  return x + 1;
}
__device__ float f2(float x) {
  return x * 2;
}
__device__ fn fns[2] = {f1, f2};
__global__ void vadd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
__global__ void st(P p, float* o) {
  o[threadIdx.x] = p.a + p.b + p.c[threadIdx.x % 13];
}
__global__ void calls(float* o, int k) {
  o[blockIdx.x] = helper(o[0], k);
  o[1] = fns[k & 1](o[2]);
}
__global__ void __launch_bounds__(256, 2) tile(const float* a, const float* b, float* c, int n) {
  __shared__ float sa[16][16], sb[16][16];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float s = 0;
  for (int t = 0; t < n / 16; t++) {
    sa[threadIdx.y][threadIdx.x] = a[y * n + t * 16 + threadIdx.x];
    sb[threadIdx.y][threadIdx.x] = b[(t * 16 + threadIdx.y) * n + x];
    __syncthreads();
    for (int k = 0; k < 16; k++) s += sa[threadIdx.y][k] * sb[k][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = s;
}
__global__ void red(const float* a, float* o, int n) {
  extern __shared__ float sm[];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + t;
  if (i >= n) return;
  sm[t] = a[i];
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) sm[t] += sm[t + s];
    __syncthreads();
  }
  if (t == 0) atomicAdd(o, sm[0]);
}
__global__ void hist(const unsigned char* d, unsigned* h, int n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[d[i]], 1);
  __syncthreads();
  atomicAdd(&h[threadIdx.x], s[threadIdx.x]);
}
__global__ void shfl(float* a) {
  float v = a[threadIdx.x];
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  a[threadIdx.x] = v;
  if (__any_sync(~0u, v > 3)) printf("x %d %f\n", blockIdx.x, v);
}
__global__ void sw(int* a, int k) {
  switch (k) {
    case 0:
      a[0] = 1;
      break;
    case 1:
      a[1] = 3;
      break;
    case 2:
      a[4] = 3;
      break;
    case 3:
      a[7] = 1;
      break;
    case 4:
      a[0] = 9;
      break;
    case 5:
      a[5] = 8;
      break;
    default:
      a[6] = 3;
  }
}
__global__ void casl(double* a, double v) {
  unsigned long long *p = (unsigned long long*)a, o = *p, q;
  do {
    q = o;
    o = atomicCAS(p, q, __double_as_longlong(v + __longlong_as_double(q)));
  } while (o != q);
}
__global__ void mulhi(unsigned long long* a) {
  __int128 x = a[0];
  x *= a[1];
  x += a[2];
  a[3] = x >> 64;
  a[4] = x;
}
__global__ void math(double* a, float* b) {
  a[0] = sin(a[1]) + pow(a[2], a[3]);
  b[0] = __expf(b[1]) + sqrtf(b[2]) / b[3];
  asm volatile("{ .reg .f32 t; add.f32 t,%0,%0; mov.f32 %0,t; }" : "+f"(b[3]));
}
__global__ void vec(float4* a, int4* b) {
  a[threadIdx.x] = make_float4(a[0].x, a[1].y, 1.f, -2.5f);
  b[0] = make_int4(1, -2, 3, b[1].w);
}
__global__ void nopar() {
  mg++;
}
__global__ void spin(volatile int* f, int* o) {
  while (*f == 0)
    ;
  o[0] = 1;
}
template <class T>
__global__ void tmpl(T* a) {
  a[blockIdx.z * gridDim.y] = coef[threadIdx.x & 3];
}
template __global__ void tmpl<float>(float*);
template __global__ void tmpl<double>(double*);

// Kernels as a compiler makes them, for kernels_test.cc.
#include <cuda_fp16.h>

extern "C" __global__ void add_vectors(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void multiply_matrices(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n; tile += 16) {
    ta[threadIdx.y][threadIdx.x] = row < n && tile + threadIdx.x < n ? a[row * n + tile + threadIdx.x] : 0;
    tb[threadIdx.y][threadIdx.x] = tile + threadIdx.y < n && column < n ? b[(tile + threadIdx.y) * n + column] : 0;
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum = __fmaf_rn(ta[threadIdx.y][k], tb[k][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

// Threads past the end return before the barriers; the last warp reduces with shuffles.
extern "C" __global__ void reduce(const int* in, int* out, int n) {
  extern __shared__ int partial[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = 0;
  if (i >= n && threadIdx.x >= 64) return;
  partial[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half >= 32; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x >= 32) return;
  int sum = partial[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i] != 0) atomicAdd(&bins[i], local[i]);
}

// Division and remainder, 64-bit arithmetic, doubles, branches, local arrays, a loop the lanes leave at different
// times.
extern "C" __global__ void mixture(const long long* in, long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long v = in[i];
  int digits[20];
  int count = 0;
  unsigned long long u = v < 0 ? 0ull - (unsigned long long)v : (unsigned long long)v;
  do {
    digits[count++] = (int)(u % 10);
    u /= 10;
  } while (u != 0);
  long long checksum = 0;
  for (int k = 0; k < count; ++k) checksum = checksum * 31 + digits[(k * 7) % count];
  const double root = __dsqrt_rn(__ddiv_rn((double)v * (double)v, 3.0));
  switch (count % 5) {
    case 0:
      checksum ^= __double_as_longlong(root);
      break;
    case 1:
      checksum += __popcll(v);
      break;
    case 2:
      checksum -= __brevll(v) >> 40;
      break;
    case 3:
      checksum += (long long)floor(root);
      break;
    default:
      checksum = ~checksum;
      break;
  }
  out[i] = checksum;
}

extern "C" __global__ void halves(const __half2* a, const __half2* b, __half2* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half2 x = __hfma2(a[i], b[i], __hadd2(a[i], b[i]));
  x = __hmax2(x, __hneg2(a[i]));
  out[i] = __hlt(__low2half(a[i]), __high2half(b[i])) ? x : __lowhigh2highlow(x);
}

// Functions of libdevice, in both precisions.
extern "C" __global__ void functions(const float* in, float* single, double* wide, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  single[i] = sinf(x) + expf(-x * x) * logf(1.0f + fabsf(x)) + powf(fabsf(x), 0.7f) + erff(x);
  wide[i] = sin((double)x) + exp(-(double)x) + cbrt((double)x) + atan2((double)x, 2.0);
}

__device__ long long total;
__constant__ int weights[4] = {1, 10, 100, 1000};
extern "C" __global__ void use_globals(const int* in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    atomicAdd((unsigned long long*)&total, (unsigned long long)((long long)in[i] * weights[i & 3]));
}

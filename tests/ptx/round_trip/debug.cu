// Small on purpose: -G and -lineinfo output is long.
struct Pair {
  int first;
  double second;
};
__device__ __noinline__ int twice(int x) {
  return x + x;
}
__global__ void scale(Pair* pairs, int n) {
  __shared__ int cache[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  cache[threadIdx.x & 63] = i;
  __syncthreads();
  if (i < n) pairs[i].first = twice(cache[0]) + static_cast<int>(pairs[i].second);
}

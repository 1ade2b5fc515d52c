// Kernels for image_shell, and some more of them, so that compiling their rewritten form takes longer than a program's
// start should.

#ifdef WITH_VARIABLE
__device__ unsigned total;

extern "C" __global__ void add(unsigned amount) {
  if (threadIdx.x == 0) atomicAdd(&total, amount);
}
#endif

extern "C" __global__ void scale(const int* in, int* out) {
  extern __shared__ int dynamic[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (out == nullptr) dynamic[threadIdx.x] = i;  // there is some to be set
  out[i] = in[i] * 3 + static_cast<int>(blockIdx.x);
}

/// Stays until *flag is not 0.
extern "C" __global__ void wait_for(const volatile unsigned* flag) {
  while (*flag == 0) __nanosleep(100'000);
}

template <int N>
__device__ void more(float* values) {
  __shared__ float part[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = values[i] * N;
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  values[i] = part[0] + N;
}

extern "C" __global__ void more_1(float* values) {
  more<1>(values);
}
extern "C" __global__ void more_2(float* values) {
  more<2>(values);
}
extern "C" __global__ void more_3(float* values) {
  more<3>(values);
}

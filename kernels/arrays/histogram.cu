// Adds the counts of the 256 byte values of `in` to `bins`: counted in shared memory by a grid-stride loop, then
// added to global memory once a block. A block run twice or not at all leaves wrong counts.
namespace {
constexpr unsigned kBins = 256;
}

extern "C" __global__ void histogram(const unsigned* in, unsigned* bins, unsigned count) {
  __shared__ unsigned local[kBins];
  for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) local[bin] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const unsigned word = in[i];
    atomicAdd(&local[word & 0xff], 1u);
    atomicAdd(&local[word >> 8 & 0xff], 1u);
    atomicAdd(&local[word >> 16 & 0xff], 1u);
    atomicAdd(&local[word >> 24], 1u);
  }
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
    if (local[bin] != 0) atomicAdd(&bins[bin], local[bin]);
  }
}

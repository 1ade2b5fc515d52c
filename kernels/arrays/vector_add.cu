// out[i] = a[i] + b[i]. One element a thread, the last block partly idle.
extern "C" __global__ void vectorAdd(const float* a, const float* b, float* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = __fadd_rn(a[i], b[i]);
}

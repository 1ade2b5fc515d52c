// Block-tasks of any length: every thread runs `iterations` dependent fused multiply-adds over a 4096-word table that
// stays in the cache, then adds the bits of its result, mixed with its index, to its block's word of `out`. It adds, so
// a block run twice is as visible as one left out; one word a block, so that checking costs little beside the work.
namespace {
constexpr unsigned kTableMask = 4095;
constexpr float kScale = 0.998f;
}  // namespace

extern "C" __global__ void work(const float* table, unsigned* out, unsigned iterations) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = table[i & kTableMask];
  for (unsigned k = 0; k < iterations; ++k) x = __fmaf_rn(x, kScale, table[(i + k * 32) & kTableMask]);
  atomicAdd(&out[blockIdx.x], __float_as_uint(x) ^ i);
}

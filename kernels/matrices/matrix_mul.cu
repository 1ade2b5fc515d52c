// out = a * b, row-major, a is rows x inner, b is inner x columns. One 16 x 16 tile of `out` a block on a 2-D grid;
// the blocks at the edges have threads without an element, which still fetch for the others and meet the barriers.
// The products are summed over `inner` in rising order, so the result does not depend on the tiling.
namespace {
constexpr unsigned kTile = 16;
}

extern "C" __global__ void matrixMul(const float* a, const float* b, float* out, unsigned rows, unsigned columns,
                                     unsigned inner) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const unsigned row = blockIdx.y * kTile + threadIdx.y;
  const unsigned column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (unsigned first = 0; first < inner; first += kTile) {
    const unsigned a_column = first + threadIdx.x;
    const unsigned b_row = first + threadIdx.y;
    if (row < rows && a_column < inner) a_tile[threadIdx.y][threadIdx.x] = a[row * inner + a_column];
    if (b_row < inner && column < columns) b_tile[threadIdx.y][threadIdx.x] = b[b_row * columns + column];
    __syncthreads();
    const unsigned depth = inner - first < kTile ? inner - first : kTile;
    for (unsigned k = 0; k < depth; ++k) sum = __fmaf_rn(a_tile[threadIdx.y][k], b_tile[k][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < rows && column < columns) out[row * columns + column] = sum;
}

// One time step of a nine-point stencil on a grid: a weighted sum of each inner cell, its four neighbours beside and
// its four at the corners. Cells at the edge of the grid keep their value. Blocks of 32 x 8 cells with a border of one
// cell in shared memory.
namespace {
constexpr int kWide = 32;
constexpr int kHigh = 8;
constexpr float kCenter = 0.2f;
constexpr float kBeside = 0.15f;
constexpr float kCorner = 0.05f;
}  // namespace

extern "C" __global__ void stencil2D(const float* from, float* to, int columns, int rows) {
  __shared__ float tile[kHigh + 2][kWide + 2];
  const int left = static_cast<int>(blockIdx.x) * kWide - 1;
  const int top = static_cast<int>(blockIdx.y) * kHigh - 1;
  const int thread = static_cast<int>(threadIdx.y * kWide + threadIdx.x);
  for (int i = thread; i < (kHigh + 2) * (kWide + 2); i += kHigh * kWide) {
    const int x = left + i % (kWide + 2);
    const int y = top + i / (kWide + 2);
    if (x >= 0 && x < columns && y >= 0 && y < rows) tile[i / (kWide + 2)][i % (kWide + 2)] = from[y * columns + x];
  }
  __syncthreads();
  const int tx = static_cast<int>(threadIdx.x) + 1;
  const int ty = static_cast<int>(threadIdx.y) + 1;
  const int x = left + tx;
  const int y = top + ty;
  if (x >= columns || y >= rows) return;
  float sum = tile[ty][tx];
  if (x > 0 && x < columns - 1 && y > 0 && y < rows - 1) {
    const float beside =
        __fadd_rn(__fadd_rn(tile[ty - 1][tx], tile[ty + 1][tx]), __fadd_rn(tile[ty][tx - 1], tile[ty][tx + 1]));
    const float corners = __fadd_rn(__fadd_rn(tile[ty - 1][tx - 1], tile[ty - 1][tx + 1]),
                                    __fadd_rn(tile[ty + 1][tx - 1], tile[ty + 1][tx + 1]));
    sum = __fmaf_rn(corners, kCorner, __fmaf_rn(beside, kBeside, __fmul_rn(sum, kCenter)));
  }
  to[y * columns + x] = sum;
}

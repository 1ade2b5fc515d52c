// Edges of a grey picture, in four launches: smoothing; how much and in which direction brightness changes; only the
// crest of each edge; and of that the strong part with the weak parts that hang on to it. Blocks of 16 x 16 pixels with
// a border in shared memory. Outside the picture counts as its nearest pixel. All integers; weak pixels are followed
// within a block's tile only, as a block knows no more.
namespace {
constexpr int kTile = 16;
constexpr unsigned kStrong = 2;
constexpr unsigned kWeak = 1;
constexpr unsigned kStrongLeast = 160;
constexpr unsigned kWeakLeast = 60;

/// A tile of the picture with a border on every side.
template <int kBorder>
struct Tile {
  static constexpr int kSide = kTile + 2 * kBorder;
  unsigned at[kSide][kSide];
};

template <int kBorder>
__device__ __forceinline__ void fetch(Tile<kBorder>& tile, const unsigned* from, int wide, int high) {
  constexpr int kSide = Tile<kBorder>::kSide;
  for (int i = static_cast<int>(threadIdx.y * kTile + threadIdx.x); i < kSide * kSide; i += kTile * kTile) {
    const int x = static_cast<int>(blockIdx.x) * kTile + i % kSide - kBorder;
    const int y = static_cast<int>(blockIdx.y) * kTile + i / kSide - kBorder;
    tile.at[i / kSide][i % kSide] = from[min(max(y, 0), high - 1) * wide + min(max(x, 0), wide - 1)];
  }
  __syncthreads();
}

__constant__ const unsigned kBell[5] = {1, 4, 6, 4, 1};
}  // namespace

extern "C" __global__ void cannySmooth(const unsigned* from, unsigned* to, int wide, int high) {
  __shared__ Tile<2> tile;
  fetch(tile, from, wide, high);
  const int x = static_cast<int>(blockIdx.x * kTile + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * kTile + threadIdx.y);
  if (x >= wide || y >= high) return;
  unsigned sum = 0;
  for (int j = 0; j < 5; ++j) {
    unsigned row = 0;
    for (int i = 0; i < 5; ++i) row += kBell[i] * tile.at[threadIdx.y + j][threadIdx.x + i];
    sum += kBell[j] * row;
  }
  to[y * wide + x] = sum / 256;
}

/// Leaves the change of brightness times four, plus its direction: 0 across, 1 down, 2 and 3 along the diagonals.
extern "C" __global__ void cannyGradient(const unsigned* from, unsigned* to, int wide, int high) {
  __shared__ Tile<1> tile;
  fetch(tile, from, wide, high);
  const int x = static_cast<int>(blockIdx.x * kTile + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * kTile + threadIdx.y);
  if (x >= wide || y >= high) return;
  const auto at = [&](int i, int j) { return static_cast<int>(tile.at[threadIdx.y + j][threadIdx.x + i]); };
  const int across = at(2, 0) + 2 * at(2, 1) + at(2, 2) - at(0, 0) - 2 * at(0, 1) - at(0, 2);
  const int down = at(0, 2) + 2 * at(1, 2) + at(2, 2) - at(0, 0) - 2 * at(1, 0) - at(2, 0);
  const unsigned a = abs(across);
  const unsigned d = abs(down);
  // The tangent of 22.5 degrees is near 29 / 70.
  const unsigned direction = 70 * d <= 29 * a ? 0 : 70 * a <= 29 * d ? 1 : (across > 0) == (down > 0) ? 2 : 3;
  to[y * wide + x] = (a + d) * 4 + direction;
}

extern "C" __global__ void cannyThin(const unsigned* from, unsigned* to, int wide, int high) {
  __shared__ Tile<1> tile;
  fetch(tile, from, wide, high);
  const int x = static_cast<int>(blockIdx.x * kTile + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * kTile + threadIdx.y);
  if (x >= wide || y >= high) return;
  const unsigned tx = threadIdx.x + 1;
  const unsigned ty = threadIdx.y + 1;
  const unsigned here = tile.at[ty][tx] / 4;
  unsigned before = 0;
  unsigned after = 0;
  switch (tile.at[ty][tx] % 4) {
    case 0:
      before = tile.at[ty][tx - 1];
      after = tile.at[ty][tx + 1];
      break;
    case 1:
      before = tile.at[ty - 1][tx];
      after = tile.at[ty + 1][tx];
      break;
    case 2:
      before = tile.at[ty - 1][tx - 1];
      after = tile.at[ty + 1][tx + 1];
      break;
    default:
      before = tile.at[ty - 1][tx + 1];
      after = tile.at[ty + 1][tx - 1];
      break;
  }
  const bool crest = here >= before / 4 && here > after / 4;
  to[y * wide + x] = !crest || here < kWeakLeast ? 0 : here < kStrongLeast ? kWeak : kStrong;
}

extern "C" __global__ void cannyFollow(const unsigned* from, unsigned* to, int wide, int high) {
  __shared__ Tile<1> tile;
  fetch(tile, from, wide, high);
  const unsigned tx = threadIdx.x + 1;
  const unsigned ty = threadIdx.y + 1;
  unsigned here = tile.at[ty][tx];
  for (bool changed = true; changed;) {
    bool beside_strong = false;
    if (here == kWeak) {
      for (unsigned j = ty - 1; j <= ty + 1; ++j) {
        for (unsigned i = tx - 1; i <= tx + 1; ++i) beside_strong |= tile.at[j][i] == kStrong;
      }
    }
    changed = __syncthreads_or(beside_strong);
    if (beside_strong) tile.at[ty][tx] = here = kStrong;
    __syncthreads();
  }
  const int x = static_cast<int>(blockIdx.x * kTile + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * kTile + threadIdx.y);
  if (x < wide && y < high) to[y * wide + x] = here == kStrong ? 255 : 0;
}

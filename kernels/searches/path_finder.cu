// The cheapest way down a grid of costs, by dynamic programming: the cost of reaching a cell is its own plus the least
// of the three above it. A launch goes `rows` rows down. A block keeps a row in shared memory, and as its edges lack
// what the neighbouring blocks compute, it starts with a border of `rows` columns on either side, of which it loses one
// column a row and so ends with the columns that are its own (ghost zones). Barriers twice a row.
namespace {
constexpr int kThreads = 256;
}

extern "C" __global__ void pathFinder(const unsigned* wall, const unsigned* from, unsigned* to, unsigned columns,
                                      unsigned first_row, unsigned rows) {
  __shared__ unsigned reached[kThreads];
  const int border = static_cast<int>(rows);
  const int own = kThreads - 2 * border;
  const int thread = static_cast<int>(threadIdx.x);
  const int column = static_cast<int>(blockIdx.x) * own - border + thread;
  const int last = static_cast<int>(columns) - 1;
  const bool inside = column >= 0 && column <= last;
  const int left = column == 0 ? thread : thread - 1;
  const int right = column == last ? thread : thread + 1;

  if (inside) reached[thread] = from[column];
  for (int row = 0; row < border; ++row) {
    const bool known = inside && thread > row && thread < kThreads - 1 - row;
    unsigned least = 0;
    __syncthreads();
    if (known) least = min(min(reached[left], reached[right]), reached[thread]);
    __syncthreads();
    if (known) reached[thread] = least + wall[(first_row + row) * columns + column];
  }
  if (inside && thread >= border && thread < border + own) to[column] = reached[thread];
}

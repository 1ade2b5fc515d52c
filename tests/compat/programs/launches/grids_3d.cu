// compat: grids and blocks of two and three dimensions, with odd sizes and long second and third dimensions
// soft: yes
#include "work.h"

__global__ void mark(std::uint32_t* cells, int steps) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  std::uint32_t& cell = cells[block * blockDim.x * blockDim.y * blockDim.z + thread];
  cell = mix(cell + blockIdx.x + 3 * blockIdx.y + 5 * blockIdx.z + 7 * threadIdx.x + 11 * threadIdx.y +
                 13 * threadIdx.z + 17 * gridDim.x + 19 * gridDim.y + 23 * gridDim.z,
             steps);
}

int main() {
  const int rounds = scaled(40, 2), steps = work_steps() / 2;
  const struct {
    dim3 grid, block;
  } shapes[] = {{dim3(7, 11, 13), dim3(5, 7, 3)},   {dim3(1, 1, 997), dim3(1, 1, 64)}, {dim3(1, 6001, 1), dim3(32, 2)},
                {dim3(3, 1, 1), dim3(1, 1024, 1)},  {dim3(129, 17, 2), dim3(16, 16)},  {dim3(1, 65535, 1), dim3(8)},
                {dim3(1, 2, 65535), dim3(2, 2, 2)}, {dim3(1, 1, 1), dim3(1, 1, 1)}};
  for (const auto& shape : shapes) {
    dim3 grid = shape.grid;
    grid.y = grid.y > 100 ? scaled(grid.y, 101) : grid.y;
    grid.z = grid.z > 100 ? scaled(grid.z, 101) : grid.z;
    grid.x = grid.x > 100 ? scaled(grid.x, 9) : grid.x;
    const std::size_t count = std::size_t{1} * grid.x * grid.y * grid.z * shape.block.x * shape.block.y * shape.block.z;
    std::uint32_t* cells = zeros<std::uint32_t>(count);
    for (int round = 0; round < rounds; ++round) mark<<<grid, shape.block>>>(cells, steps);
    CHECK(cudaGetLastError());
    std::printf("%u %u %u ", grid.x, grid.y, grid.z);
    print_device_hash("cells", cells, count);
    CHECK(cudaFree(cells));
  }
}

// compat: memsets of bytes, of rows with a pitch, of boxes, of 16- and 32-bit words, between kernels
// libs: cuda
#include <cuda.h>

#include "advance.h"

int main() {
  const int count = scaled(1 << 18, 1 << 11), steps = work_steps(), rounds = work_rounds();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  const auto at = reinterpret_cast<CUdeviceptr>(values);
  std::size_t pitch = 0;
  void* rows = nullptr;
  CHECK(cudaMallocPitch(&rows, &pitch, 300, 40));
  cudaPitchedPtr box{};
  CHECK(cudaMalloc3D(&box, make_cudaExtent(100, 20, 10)));
  for (int round = 0; round < rounds; ++round) {
    launch_advance(values, count, steps, round);
    CHECK(cudaMemset(values, round & 255, 1001));
    CHECK(cudaMemsetAsync(values + 1000, 255 - (round & 255), 77));
    CHECK_ZERO(cuMemsetD16(at + 8000, static_cast<unsigned short>(round * 259), 33));
    CHECK_ZERO(cuMemsetD32(at + 16000 / 4 * 1, 0x01020304u * (round & 63), 17));
    CHECK_ZERO(cuMemsetD2D32(at + 4096, 256, round, 3, 5));
    CHECK(cudaMemset2D(rows, pitch, round & 255, 299, 40));
    CHECK(cudaMemset2DAsync(static_cast<char*>(rows) + 10, pitch, 7, 20, 10));
    CHECK(cudaMemset3D(box, (round + 1) & 255, make_cudaExtent(99, 20, 10)));
  }
  print_device_hash("values", values, count);
  CHECK(cudaDeviceSynchronize());
  std::vector<unsigned char> host(300 * 40), host_box(100 * 20 * 10);
  CHECK(cudaMemcpy2D(host.data(), 300, rows, pitch, 299, 40, cudaMemcpyDeviceToHost));
  must(host[9] == (rounds - 1) % 256 && host[10] == 7 && host[30 + 300 * 9] == (rounds - 1) % 256, "rows");
  print_hash("rows", host.data(), host.size());
  for (int y = 0; y < 200; ++y) {
    CHECK(cudaMemcpy(&host_box[100 * y], static_cast<char*>(box.ptr) + y * box.pitch, 99, cudaMemcpyDeviceToHost));
  }
  print_hash("box", host_box.data(), host_box.size());
}

// compat: copies of rectangles and boxes between host, device and arrays
#include "advance.h"

int main() {
  const int steps = work_steps(), rounds = work_rounds() / 4 + 1;
  constexpr int kWidth = 200, kHeight = 90, kDepth = 20;
  std::vector<std::uint32_t> host(kWidth * kHeight * kDepth), back(host.size());
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = mix(static_cast<unsigned>(i), 2);
  cudaPitchedPtr a{}, b{};
  const cudaExtent extent = make_cudaExtent(kWidth * 4, kHeight, kDepth);
  CHECK(cudaMalloc3D(&a, extent));
  CHECK(cudaMalloc3D(&b, extent));
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<std::uint32_t>();
  cudaArray_t array = nullptr;
  CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(kWidth, kHeight, kDepth)));
  const int words = static_cast<int>(a.pitch / 4) * kHeight * kDepth;
  CHECK(cudaMemset(a.ptr, 0, words * 4ul));
  for (int round = 0; round < rounds; ++round) {
    cudaMemcpy3DParms in{}, across{}, to_array{}, out{};
    in.srcPtr = make_cudaPitchedPtr(host.data(), kWidth * 4, kWidth, kHeight);
    in.dstPtr = a;
    in.extent = extent;
    in.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3DAsync(&in));
    launch_advance(static_cast<std::uint32_t*>(a.ptr), words, steps, round);
    across.srcPtr = a;
    across.srcPos = make_cudaPos(16, 3, 2);
    across.dstPtr = b;
    across.dstPos = make_cudaPos(40, 1, 5);
    across.extent = make_cudaExtent(600, 80, 15);
    across.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemset3DAsync(b, round & 255, extent));
    CHECK(cudaMemcpy3DAsync(&across));
    to_array.srcPtr = b;
    to_array.dstArray = array;
    to_array.extent = make_cudaExtent(kWidth, kHeight, kDepth);
    to_array.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3DAsync(&to_array));
    out.srcArray = array;
    out.dstPtr = make_cudaPitchedPtr(back.data(), kWidth * 4, kWidth, kHeight);
    out.extent = to_array.extent;
    out.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&out));
    host[round] ^= back[kWidth * kHeight * 6 + kWidth * 10 + 50];
  }
  print_hash("boxes", back.data(), back.size() * 4);
  std::vector<std::uint32_t> part(50 * 30);
  CHECK(cudaMemcpy2D(part.data(), 50 * 4, static_cast<char*>(b.ptr) + 80, b.pitch, 50 * 4, 30, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 50; ++x) must(part[y * 50 + x] == back[y * kWidth + x + 20], "rectangle");
  }
  print_hash("rectangle", part.data(), part.size() * 4);
  CHECK(cudaFreeArray(array));
}

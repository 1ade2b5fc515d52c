// compat: the runtime's own modules, loaded lazily or eagerly, with a kernel first used while others run
// args: LAZY
// args: EAGER
// soft: yes
#include "mix.h"

namespace {

__device__ unsigned total = 5;
__constant__ unsigned addends[3] = {1, 2, 3};

template <int N>
__global__ void late(unsigned* out) {
  if (threadIdx.x == 0 && blockIdx.x == 0) out[N] = total + addends[N % 3] * N;
}

template <int N>
void launch_late(unsigned* out, cudaStream_t stream) {
  late<N><<<4, 64, 0, stream>>>(out);
  CHECK(cudaGetLastError());
}

}  // namespace

int main(int argc, char** argv) {
  setenv("CUDA_MODULE_LOADING", argc > 1 ? argv[1] : "LAZY", 1);
  const bool small = on_software();
  const int count = small ? 2048 : 1 << 20, depth = small ? 4 : 500;
  unsigned *data = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(unsigned)));
  CHECK(cudaMalloc(&out, 8 * sizeof(unsigned)));
  number_kernel<<<blocks_for(count), 256>>>(data, count);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  unsigned round = 0;
  void (*const lates[])(unsigned*, cudaStream_t) = {launch_late<0>, launch_late<1>, launch_late<2>, launch_late<3>,
                                                    launch_late<4>, launch_late<5>, launch_late<6>, launch_late<7>};
  for (const auto launch : lates) {
    for (int i = 0; i < 10; ++i) launch_mix(data, count, round++, depth);
    launch(out, stream);
  }
  CHECK(cudaDeviceSynchronize());
  checked_results("mixed", data, count, round, depth);
  unsigned got[8];
  CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (const unsigned value : got) std::printf("%u\n", value);
  const unsigned six = 6;
  CHECK(cudaMemcpyToSymbol(total, &six, sizeof six));
  launch_late<7>(out, stream);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  std::printf("%u\n", got[7]);
  return 0;
}

// compat: static objects whose destructors wait for the GPU and free memory while kernels run
// args: global
// args: local
// args: thread_local
// soft: yes
#include "mix.h"

namespace {

struct Buffer {
  cudaStream_t stream = nullptr;
  unsigned* data = nullptr;
  int count = 0;

  void begin(bool small) {
    count = small ? 1024 : 1 << 20;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(unsigned)));
    number_kernel<<<blocks_for(count), 256, 0, stream>>>(data, count);
    for (unsigned round = 0; round < (small ? 3 : 200); ++round)
      launch_mix(data, count, round, small ? 3 : 500, stream);
  }

  ~Buffer() {
    if (data == nullptr) return;
    print_error("synchronize", cudaStreamSynchronize(stream));
    unsigned word = 0;
    const cudaError_t copied = cudaMemcpy(&word, data + 1, sizeof word, cudaMemcpyDeviceToHost);
    print_error("copy", copied);
    if (copied == cudaSuccess) std::printf("element 1 is %u\n", word);
    print_error("free", cudaFree(data));
    print_error("stream destroy", cudaStreamDestroy(stream));
  }
};

Buffer global;
thread_local Buffer of_thread;

Buffer& local() {
  static Buffer buffer;
  return buffer;
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = on_software();
  const char* which = argc > 1 ? argv[1] : "global";
  Buffer& buffer = std::strcmp(which, "global") == 0 ? global : std::strcmp(which, "local") == 0 ? local() : of_thread;
  buffer.begin(small);
  std::printf("main ends\n");
  std::fflush(stdout);
  return 0;
}

// A program that works for 100 ms and then ends in one way; isolated_faults.sh starts it again and again. Exit status
// 0: nothing went wrong, 3: it could not start, 4: a fault of another program reached it, 5: its own fault.
#include <cassert>
#include <csignal>
#include <cstdio>
#include <string_view>

__global__ void work(long cycles) {
  const long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
__global__ void address() {
  *reinterpret_cast<volatile int*>(0x10) = 1;
}
__global__ void misaligned(char* place) {
  *reinterpret_cast<volatile int*>(place + 1) = 1;
}
__global__ void trap() {
  asm("trap;");
}
__global__ void fails() {
  assert(clock64() == 0);
}

int main(int, char** arguments) {
  const std::string_view way = arguments[1];
  char* place = nullptr;
  if (const cudaError_t error = cudaMalloc(&place, 1 << 20); error != cudaSuccess) {
    std::printf("start: %s\n", cudaGetErrorString(error));
    return 3;
  }
  for (int i = 0; i < 100; ++i) work<<<132, 256>>>(2'000'000);
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
    std::printf("reached: %s\n", cudaGetErrorString(error));
    return 4;
  }
  if (way == "address") address<<<1, 1>>>();
  if (way == "misaligned") misaligned<<<1, 1>>>(place);
  if (way == "trap") trap<<<1, 1>>>();
  if (way == "assert") fails<<<1, 1>>>();
  if (way == "kill") {  // in the middle of a kernel
    work<<<132, 256>>>(200'000'000);
    std::raise(SIGKILL);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s: %s\n", arguments[1], cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 5;
}

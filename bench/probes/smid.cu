// What %smid names when several processes share a GPU under MPS. nvcc -O2 -arch=sm_90 smid.cu -o smid
//   smid both FIRST LAST       one process: a grid fills all SMs but those; where do 64 further blocks land?
//   smid hold FIRST LAST       fills all SMs but those whose %smid is FIRST to LAST, for 1.5 s
//   smid look BLOCKS           prints the %smid that so many blocks see, three times (beside `hold` of another process)
//   smid long BLOCKS           the same with 8 blocks every 200 ms, after a first grid of BLOCKS
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

__device__ unsigned smid() {
  unsigned s;
  asm volatile("mov.u32 %0, %smid;" : "=r"(s));
  return s;
}
__device__ unsigned long long now_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

__global__ void hold(unsigned first, unsigned last, unsigned long long ns) {
  if (smid() >= first && smid() <= last) return;
  for (const unsigned long long begin = now_ns(); now_ns() - begin < ns;) __nanosleep(2000);
}

__global__ void look(unsigned* out, unsigned long long ns) {
  for (const unsigned long long begin = now_ns(); now_ns() - begin < ns;) __nanosleep(100);
  if (threadIdx.x == 0) out[blockIdx.x] = smid();
}

void print(const unsigned* seen, int blocks) {
  const std::set<unsigned> sms(seen, seen + blocks);
  for (auto it = sms.begin(); it != sms.end();) {
    const unsigned first = *it;
    unsigned last = first;
    while (++it != sms.end() && *it == last + 1) last = *it;
    std::printf("%u-%u ", first, last);
  }
  std::printf("(%zu SMs)\n", sms.size());
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int full = 132 * 8, a = std::atoi(argv[2]), b = argc > 3 ? std::atoi(argv[3]) : 0;
  unsigned* seen;
  cudaMallocHost(&seen, 4096);
  if (!std::strcmp(argv[1], "hold")) {
    hold<<<full, 256>>>(a, b, 1'500'000'000ull);
    cudaDeviceSynchronize();
  } else if (!std::strcmp(argv[1], "both")) {
    cudaStream_t one, other;
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    look<<<8, 256, 0, other>>>(seen, 1000);
    cudaDeviceSynchronize();
    hold<<<full, 256, 0, one>>>(a, b, 300'000'000ull);
    usleep(50'000);
    look<<<64, 256, 0, other>>>(seen, 20'000);
    cudaStreamSynchronize(other);
    print(seen, 64);
    cudaDeviceSynchronize();
  } else {
    const bool many = !std::strcmp(argv[1], "long");
    for (int round = 0; round < (many ? 26 : 4); ++round) {
      const int blocks = many && round > 0 ? 8 : a;
      look<<<blocks, 256>>>(seen, 20'000);
      cudaDeviceSynchronize();
      print(seen, blocks);
      if (many) usleep(200'000);
    }
  }
}

// compat: atomics of every operation, type and scope, in global, shared and mapped memory
// soft: yes
#include <cuda_fp16.h>

#include "work.h"

struct Cells {
  unsigned add, sub, minimum, maximum, all, any, odd, increased, decreased, exchanged, swapped, in_block;
  int smallest;
  unsigned long long wide, highest;
  float sum;
  double precise;
  __half2 pair;
  unsigned unused;  // so that no byte is padding
};

__global__ void update(Cells* cells, Cells* on_host, int count, int steps) {
  __shared__ unsigned shared[2];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 2) shared[threadIdx.x] = 0;
  __syncthreads();
  const unsigned value = mix(i, steps);
  Cells& mine = cells[blockIdx.x % 64];
  if (i < count) {
    atomicAdd(&mine.add, value);
    atomicSub(&mine.sub, value);
    atomicMin(&mine.minimum, value);
    atomicMax(&mine.maximum, value);
    atomicAnd(&mine.all, value | 0x0f0f0f0f);
    atomicOr(&mine.any, value & 0x11111111);
    atomicXor(&mine.odd, value);
    atomicInc(&mine.increased, 1000);
    atomicDec(&mine.decreased, 777);
    atomicMin(&mine.smallest, static_cast<int>(value));
    atomicAdd(&mine.wide, static_cast<unsigned long long>(value) << 8);
    atomicMax(&mine.highest, static_cast<unsigned long long>(value) << 20);
    if (i % 16 == 0) {  // small whole numbers: sums are exact in any order
      atomicAdd(&mine.sum, 1.0f);
      atomicAdd(&mine.precise, 0.5);
    }
    if (i < 2048) atomicAdd(&mine.pair, __floats2half2_rn(1, 2));
    if (i % 16 == 5) {  // a sum by compare and swap
      unsigned seen = mine.swapped, expected;
      do {
        expected = seen;
        seen = atomicCAS(&mine.swapped, expected, expected + value % 16);
      } while (seen != expected);
    }
    atomicAdd_block(&shared[0], value);
    atomicXor_block(&shared[1], value);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&mine.in_block, shared[0] ^ shared[1]);
    atomicExch(&mine.exchanged, 4711u);
    atomicAdd_system(&on_host->add, shared[0]);
    atomicMax_system(&on_host->maximum, shared[1]);
    atomicAdd_system(&on_host->wide, static_cast<unsigned long long>(shared[0]));
  }
}

int main() {
  const int count = scaled(1 << 18, 1 << 10), rounds = scaled(40, 2);
  std::vector<Cells> start(64);
  std::memset(start.data(), 0, 64 * sizeof(Cells));
  for (Cells& cells : start) cells.minimum = cells.all = ~0u;
  Cells *cells = on_device(start), *mapped = nullptr;
  CHECK(cudaMallocHost(&mapped, sizeof(Cells)));
  std::memset(mapped, 0, sizeof(Cells));
  for (int round = 0; round < rounds; ++round) {
    update<<<(count + 255) / 256, 256>>>(cells, mapped, count - round, scaled(100, 4));
  }
  CHECK(cudaGetLastError());
  const std::vector<Cells> got = on_host(cells, 64);
  unsigned sum = 0, all = 0;
  for (const Cells& each : got) sum += each.add;
  for (int i = 0; i < count; ++i) {
    int times = rounds;
    for (int round = 1; round < rounds; ++round) times -= i >= count - round;
    all += mix(i, scaled(100, 4)) * times;
  }
  must(sum == all && mapped->add == all, "the sum over all threads");
  for (int i = 0; i < 64; i += 21) {
    const Cells& c = got[i];
    std::printf("%u %u %u %u %08x %08x %08x %u %u %u %u %u %d %llu %llu %g %g %g\n", c.add, c.sub, c.minimum, c.maximum,
                c.all, c.any, c.odd, c.increased, c.decreased, c.exchanged, c.swapped, c.in_block, c.smallest, c.wide,
                c.highest, c.sum, c.precise, __half2float(c.pair.y));
  }
  std::printf("%u %u %llu\n", mapped->add, mapped->maximum, mapped->wide);
  print_hash("atomics", got.data(), 64 * sizeof(Cells));
}

// Kernels that end in an error, each of another kind, and what the programs print of an error.
#pragma once

#include <cassert>

#include "mix.h"

enum class Fault { kAssert, kTrap, kNull, kWild, kMisaligned, kShared, kSpace, kStack, kPrintAssert, kNone };

inline Fault fault_named(const char* name) {
  const char* const names[] = {"assert", "trap", "null", "wild", "misaligned", "shared", "space", "stack", "print_assert"};
  for (int i = 0; i < 9; ++i)
    if (std::strcmp(names[i], name) == 0) return static_cast<Fault>(i);
  std::fprintf(stderr, "no fault %s\n", name);
  std::exit(2);
}

/// Deeper than any stack.
__device__ __noinline__ unsigned recurse(unsigned depth, unsigned seed) {
  volatile unsigned frame[64];
  for (unsigned i = 0; i < 64; ++i) frame[i] = seed + i;
  if (depth == 0) return frame[seed % 64];
  return recurse(depth - 1, frame[depth % 64] * 3 + 1) + frame[seed % 64];
}

/// All blocks work; one thread of block 50 then does what is wrong.
__global__ void fault_kernel(unsigned* data, int count, int depth, Fault fault) {
  extern __shared__ volatile unsigned dynamic[];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < static_cast<unsigned>(count)) data[i] = mix(data[i], 0, depth);
  if (blockIdx.x != 50 || threadIdx.x != 0) return;
  switch (fault) {
    case Fault::kAssert: assert(count == -1); break;
    case Fault::kTrap: __trap(); break;
    case Fault::kNull: *static_cast<volatile unsigned*>(nullptr) = data[0]; break;
    case Fault::kWild: *reinterpret_cast<volatile unsigned*>(0x7ull << 44) = data[0]; break;
    case Fault::kMisaligned: *reinterpret_cast<volatile unsigned*>(reinterpret_cast<char*>(data) + 1) = 1; break;
    case Fault::kShared: dynamic[static_cast<unsigned>(count) * 256u] = data[0]; break;
    case Fault::kSpace: {
      unsigned local[4] = {data[0], data[1], data[2], data[3]};
      unsigned old;
      asm volatile("atom.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(&local[data[4] % 4]) : "memory");
      data[0] = old + local[data[5] % 4];
      break;
    }
    case Fault::kStack: data[0] = recurse(static_cast<unsigned>(count) * 16u, data[0]); break;
    case Fault::kPrintAssert:
      printf("one thread prints\n");
      assert(count == -2);
      break;
    case Fault::kNone: break;
  }
}

constexpr int kFaultCount = 1 << 16;

inline unsigned* fault_data() {
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, kFaultCount * sizeof(unsigned)));
  number_kernel<<<blocks_for(kFaultCount), 256>>>(data, kFaultCount);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  return data;
}

inline cudaError_t launch_fault(unsigned* data, Fault fault, cudaStream_t stream = nullptr) {
  fault_kernel<<<blocks_for(kFaultCount), 256, 64, stream>>>(data, kFaultCount, 100, fault);
  return cudaGetLastError();
}

inline void print_error(const char* what, cudaError_t error) {
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  std::fflush(stdout);
}

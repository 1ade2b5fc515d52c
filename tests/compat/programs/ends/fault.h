// Kernels that end in an error, each of another kind, and what the programs print of an error.
#pragma once

#include <cassert>

#include "mix.h"

enum class Fault { kAssert, kTrap, kNull, kWild, kMisaligned, kShared, kSpace, kStack, kPrintAssert, kNone };

inline Fault fault_named(const char* name) {
  const char* const names[] = {"assert", "trap",  "null",  "wild",        "misaligned",
                               "shared", "space", "stack", "print_assert"};
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

/// All blocks work; one thread of block 50 then does what is wrong. A kernel for each fault, so that none has the needs
/// of another.
template <Fault kFault>
__global__ void fault_kernel(unsigned* data, int count, int depth) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < static_cast<unsigned>(count)) data[i] = mix(data[i], 0, depth);
  if (blockIdx.x != 50 || threadIdx.x != 0) return;
  if constexpr (kFault == Fault::kAssert) {
    assert(count == -1);
  } else if constexpr (kFault == Fault::kTrap) {
    __trap();
  } else if constexpr (kFault == Fault::kNull) {
    *static_cast<volatile unsigned*>(nullptr) = data[0];
  } else if constexpr (kFault == Fault::kWild) {
    *reinterpret_cast<volatile unsigned*>(0x7ull << 44) = data[0];
  } else if constexpr (kFault == Fault::kMisaligned) {
    *reinterpret_cast<volatile unsigned*>(reinterpret_cast<char*>(data) + 1) = 1;
  } else if constexpr (kFault == Fault::kShared) {
    extern __shared__ volatile unsigned dynamic[];
    dynamic[static_cast<unsigned>(count) * 256u] = data[0];
  } else if constexpr (kFault == Fault::kSpace) {
    unsigned local[4] = {data[0], data[1], data[2], data[3]};
    unsigned old;
    asm volatile("atom.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(&local[data[4] % 4]) : "memory");
    data[0] = old + local[data[5] % 4];
  } else if constexpr (kFault == Fault::kStack) {
    data[0] = recurse(static_cast<unsigned>(count) * 16u, data[0]);
  } else if constexpr (kFault == Fault::kPrintAssert) {
    printf("one thread prints\n");
    assert(count == -2);
  }
}

inline bool fault_is_small() {
  static const bool small = on_software();
  return small;
}

inline int fault_count() {
  return fault_is_small() ? 1 << 14 : 1 << 16;
}

/// How long the kernels, or a series of them, are to be.
inline int fault_length(int on_gpu) {
  return fault_is_small() ? 3 : on_gpu;
}

inline unsigned* fault_data() {
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, static_cast<std::size_t>(fault_count()) * sizeof(unsigned)));
  number_kernel<<<blocks_for(fault_count()), 256>>>(data, fault_count());
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  return data;
}

template <Fault kFault>
cudaError_t launch_this_fault(unsigned* data, cudaStream_t stream) {
  fault_kernel<kFault><<<blocks_for(fault_count()), 256, 64, stream>>>(data, fault_count(), fault_length(100));
  return cudaGetLastError();
}

inline cudaError_t launch_fault(unsigned* data, Fault fault, cudaStream_t stream = nullptr) {
  switch (fault) {
    case Fault::kAssert:
      return launch_this_fault<Fault::kAssert>(data, stream);
    case Fault::kTrap:
      return launch_this_fault<Fault::kTrap>(data, stream);
    case Fault::kNull:
      return launch_this_fault<Fault::kNull>(data, stream);
    case Fault::kWild:
      return launch_this_fault<Fault::kWild>(data, stream);
    case Fault::kMisaligned:
      return launch_this_fault<Fault::kMisaligned>(data, stream);
    case Fault::kShared:
      return launch_this_fault<Fault::kShared>(data, stream);
    case Fault::kSpace:
      return launch_this_fault<Fault::kSpace>(data, stream);
    case Fault::kStack:
      return launch_this_fault<Fault::kStack>(data, stream);
    case Fault::kPrintAssert:
      return launch_this_fault<Fault::kPrintAssert>(data, stream);
    case Fault::kNone:
      break;
  }
  return launch_this_fault<Fault::kNone>(data, stream);
}

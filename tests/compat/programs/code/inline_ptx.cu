// compat: inline PTX: predicates, labels in scopes, votes, shuffles, masks, bit fields, special registers
// soft: yes
#include "work.h"

__device__ std::uint32_t collatz(std::uint32_t value) {
  std::uint32_t rounds;
  asm volatile(
      "{\n\t"
      ".reg .pred p, odd;\n\t"
      ".reg .u32 v, low;\n\t"
      "mov.u32 v, %1;\n\t"
      "mov.u32 %0, 0;\n"
      "again:\n\t"
      "setp.le.u32 p, v, 1;\n\t"
      "@p bra done;\n\t"
      "and.b32 low, v, 1;\n\t"
      "setp.eq.u32 odd, low, 1;\n\t"
      "@odd mad.lo.u32 v, v, 3, 1;\n\t"
      "@!odd shr.u32 v, v, 1;\n\t"
      "add.u32 %0, %0, 1;\n\t"
      "bra again;\n"
      "done:\n\t"
      "}"
      : "=&r"(rounds)
      : "r"(value));
  return rounds;
}

__global__ void kernel(std::uint32_t* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;  // whole warps
  const std::uint32_t value = values[i] + i;
  std::uint32_t block, blocks, lane, less, active, vote, shuffled, field, permuted, found, high;
  unsigned long long wide;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(less));
  asm volatile("activemask.b32 %0;" : "=r"(active));
  asm volatile("{.reg .pred p; setp.gt.u32 p, %1, 0x7fffffff; vote.sync.ballot.b32 %0, p, 0xffffffff;}"
               : "=r"(vote)
               : "r"(mix(value, 1)));
  asm volatile("{.reg .pred q; shfl.sync.bfly.b32 %0|q, %1, 5, 0x1f, 0xffffffff; @!q mov.u32 %0, 0;}"
               : "=r"(shuffled)
               : "r"(value));
  asm("bfe.u32 %0, %1, 5, 11;" : "=r"(field) : "r"(mix(value, 2)));
  asm("prmt.b32 %0, %1, %2, 0x2705;" : "=r"(permuted) : "r"(value), "r"(vote));
  asm("bfind.u32 %0, %1;" : "=r"(found) : "r"(value | 1));
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(high) : "r"(mix(value, 3)), "r"(0x9e3779b9u));
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(wide) : "r"(value), "r"(field + 7), "l"(1ull << 40 | lane));
  std::uint32_t chosen;
  asm("{.reg .pred a, b, c; setp.lt.u32 a, %1, 1000; setp.eq.and.u32 b|c, %2, 3, a; selp.u32 %0, 17, 23, b; @c add.u32 "
      "%0, %0, 5;}"
      : "=r"(chosen)
      : "r"(value), "r"(lane));
  values[i] = block * 3 + blocks + less % 1001 + active + vote + shuffled + field + permuted + found + high +
              static_cast<std::uint32_t>(wide ^ wide >> 32) + chosen + collatz(value % 3000 + 1);
}

int main() {
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < scaled(400, 2); ++round) kernel<<<(count + 255) / 256, 256>>>(values, count);
  CHECK(cudaGetLastError());
  print_device_hash("inline", values, count);
}

// References in the CPU's own vector and fused instructions, where it has them. A function marked BENCH_NATIVE may only
// be called if has_native(); what it inlines is compiled for it too. Results do not depend on it: see rounded.h.
#pragma once

namespace gpuctl::bench {

#if defined(__x86_64__)
#define BENCH_NATIVE [[gnu::target("avx2,fma"), gnu::optimize("O3")]]

inline bool has_native() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
#else
#define BENCH_NATIVE

inline bool has_native() {
  return false;
}
#endif

}  // namespace gpuctl::bench

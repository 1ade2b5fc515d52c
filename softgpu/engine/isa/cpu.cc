#include "softgpu/engine/isa/select.h"

namespace gpuctl::softgpu::engine {

Handler select_handler(const Selector& selector) {
#if defined(__x86_64__)
  static const bool newer =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (newer) return isa_v3::select(selector);
#endif
  return isa_base::select(selector);
}

}  // namespace gpuctl::softgpu::engine

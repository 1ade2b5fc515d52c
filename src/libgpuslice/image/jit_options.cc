#include "libgpuslice/image/jit_options.h"

#include <cstdint>

namespace gpuslice {

namespace {

/// The driver's default for CU_JIT_OPTIMIZATION_LEVEL.
constexpr std::uintptr_t kUsualOptimization = 4;

bool leaves_code_alone(CUjit_option option, std::uintptr_t value) {
  switch (option) {
    case CU_JIT_WALL_TIME:
    case CU_JIT_INFO_LOG_BUFFER:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_TARGET:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
      return true;
    case CU_JIT_OPTIMIZATION_LEVEL:
      return value == kUsualOptimization;
    default:
      return false;
  }
}

}  // namespace

std::optional<int> register_limit_of(unsigned count, const CUjit_option* options, void* const* values) {
  int limit = 0;
  for (unsigned i = 0; options && values && i < count; ++i) {
    const auto value = reinterpret_cast<std::uintptr_t>(values[i]);
    if (options[i] == CU_JIT_MAX_REGISTERS) {
      limit = static_cast<int>(value);
    } else if (!leaves_code_alone(options[i], value)) {
      return std::nullopt;
    }
  }
  return limit;
}

}  // namespace gpuslice

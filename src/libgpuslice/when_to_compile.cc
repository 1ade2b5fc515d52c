#include "libgpuslice/when_to_compile.h"

#include <algorithm>

namespace gpuslice {

namespace {

constexpr std::chrono::nanoseconds kPerByte{2'200};

bool only_talks(CUjit_option option) {
  switch (option) {
    case CU_JIT_WALL_TIME:
    case CU_JIT_INFO_LOG_BUFFER:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::chrono::nanoseconds estimated_compile_time(std::size_t text_bytes) {
  return kPerByte * static_cast<long long>(text_bytes);
}

bool options_change_code(unsigned count, const CUjit_option* options) {
  return options && !std::all_of(options, options + count, only_talks);
}

Compile when_to_compile(const LoadFacts& facts) {
  if (!facts.may_wait || !facts.machine_code || facts.changed_by_options || !facts.has_context) return Compile::kNow;
  if (estimated_compile_time(facts.text_bytes) <= kWorthWaiting) return Compile::kNow;
  if (facts.stands_alone) return Compile::kLater;
  return facts.has_cache ? Compile::kNextStart : Compile::kNow;
}

}  // namespace gpuslice

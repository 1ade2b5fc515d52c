#include "libgpuslice/when_to_compile.h"

#include <algorithm>

#include "libgpuslice/jit_options.h"

namespace gpuslice {

namespace {

constexpr std::chrono::nanoseconds kPerByte{2'200};

/// Nor does one about line numbers or the driver's cache change a load.
bool same_code(CUjit_option option) {
  return leaves_code_alone(option) || option == CU_JIT_GENERATE_LINE_INFO || option == CU_JIT_CACHE_MODE;
}

}  // namespace

std::chrono::nanoseconds estimated_compile_time(std::size_t text_bytes) {
  return kPerByte * static_cast<long long>(text_bytes);
}

bool options_change_code(unsigned count, const CUjit_option* options) {
  return options && !std::all_of(options, options + count, same_code);
}

Compile when_to_compile(const LoadFacts& facts) {
  if (!facts.may_wait || !facts.machine_code || facts.changed_by_options || !facts.has_context) return Compile::kNow;
  if (estimated_compile_time(facts.text_bytes) <= kWorthWaiting) return Compile::kNow;
  if (facts.stands_alone) return Compile::kLater;
  return facts.has_cache ? Compile::kNextStart : Compile::kNow;
}

}  // namespace gpuslice

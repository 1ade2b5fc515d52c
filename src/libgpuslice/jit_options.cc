#include "libgpuslice/jit_options.h"

#include <algorithm>
#include <cstdint>

namespace gpuslice {

namespace {

/// The first driver that is asked: no older one was tried.
constexpr int kFirstDriver = 13'000;
/// Smaller texts compile in a tenth of a second.
constexpr std::size_t kWorthThreadsBytes = 65'536;
/// A program's start leaves CPUs to others.
constexpr unsigned kMostThreads = 8;

void* as_value(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

}  // namespace

bool leaves_code_alone(CUjit_option option) {
  switch (option) {
    case CU_JIT_WALL_TIME:
    case CU_JIT_INFO_LOG_BUFFER:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_FALLBACK_STRATEGY:
      return true;
    default:
      return false;
  }
}

unsigned compile_threads(int driver_version, std::size_t text_bytes, unsigned cpus) {
  if (driver_version < kFirstDriver || text_bytes < kWorthThreadsBytes) return 1;
  return std::clamp(cpus, 1u, kMostThreads);
}

JitOptions::JitOptions(const CUjit_option* given, void** values, unsigned count, int max_registers, unsigned threads) {
  if (given && values) {
    names_.assign(given, given + count);
    values_.assign(values, values + count);
    given_values_ = values;
    given_ = count;
  }
  if (max_registers > 0 && !has(CU_JIT_MAX_REGISTERS)) {
    names_.push_back(CU_JIT_MAX_REGISTERS);
    values_.push_back(as_value(static_cast<std::uintptr_t>(max_registers)));
  }
  if (threads > 1 && !has(kCompileThreads)) {
    names_.push_back(kCompileThreads);
    values_.push_back(as_value(threads));
    threads_ = true;
  }
}

bool JitOptions::has(CUjit_option name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

bool JitOptions::drop_threads() {
  if (!threads_) return false;
  names_.pop_back();
  values_.pop_back();
  threads_ = false;
  return true;
}

void JitOptions::give_back() const {
  if (given_values_) std::copy_n(values_.begin(), given_, given_values_);
}

}  // namespace gpuslice

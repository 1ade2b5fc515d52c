// Waits for values in memory, and writes them.
//
// A wait checks its word at least every 50 us. Kernels, copies and written values of this process ring the doorbell, so
// the usual end of a wait is noticed at once.
#include <algorithm>
#include <chrono>

#include "softgpu/contexts/context.h"
#include "softgpu/contexts/machine.h"
#include "softgpu/graph/work.h"

namespace gpuctl::softgpu {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstPoll = 5us;
constexpr auto kSlowestPoll = 50us;

template <class T>
T read_word(CUdeviceptr address) {
  return __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_ACQUIRE);
}

template <class T>
bool holds(T now, T value, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default:
      return static_cast<T>(~(now | value)) != 0;
  }
}

unsigned condition_of(unsigned flags) {
  return flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
}

template <class T>
void wait_value(Machine& machine, Context& context, CUdeviceptr address, T value, unsigned condition) {
  std::chrono::nanoseconds interval = kFirstPoll;
  while (!context.stopped().load()) {
    const std::uint64_t rung = machine.doorbell.count();
    if (holds(read_word<T>(address), value, condition)) return;
    machine.doorbell.wait(rung, interval);
    interval = std::min<std::chrono::nanoseconds>(interval * 2, kSlowestPoll);
  }
}

template <class T>
void write_value(Machine& machine, CUdeviceptr address, T value) {
  __atomic_store_n(reinterpret_cast<T*>(address), value, __ATOMIC_RELEASE);
  machine.doorbell.ring();
}

void run_step(Machine& machine, Context& context, const CUstreamBatchMemOpParams& step) {
  const auto& wait = step.waitValue;
  const auto& write = step.writeValue;
  switch (step.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return wait_value<std::uint32_t>(machine, context, wait.address, wait.value, condition_of(wait.flags));
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return wait_value<std::uint64_t>(machine, context, wait.address, wait.value64, condition_of(wait.flags));
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return write_value<std::uint32_t>(machine, write.address, write.value);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return write_value<std::uint64_t>(machine, write.address, write.value64);
    default:  // barriers: everything is ordered here
      return;
  }
}

bool valid_word(Machine& machine, CUdeviceptr address, std::size_t bytes) {
  return address % bytes == 0 && machine.memory.covers(address, bytes);
}

bool valid_step(Machine& machine, const CUstreamBatchMemOpParams& step) {
  const bool wide =
      step.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || step.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
  switch (step.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return condition_of(step.waitValue.flags) <= CU_STREAM_WAIT_VALUE_NOR &&
             valid_word(machine, step.waitValue.address, wide ? 8 : 4);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return step.writeValue.flags <= CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER &&
             valid_word(machine, step.writeValue.address, wide ? 8 : 4);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return true;
    default:
      return false;
  }
}

}  // namespace

CUresult check_batch(Machine& machine, const std::vector<CUstreamBatchMemOpParams>& steps) {
  const bool valid =
      std::all_of(steps.begin(), steps.end(), [&](const auto& step) { return valid_step(machine, step); });
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void run_batch(Machine& machine, Context& context, const BatchWork& work) {
  for (const CUstreamBatchMemOpParams& step : work.steps) {
    if (context.stopped().load()) return;
    run_step(machine, context, step);
  }
}

}  // namespace gpuctl::softgpu

// Kernels: checks of a launch, its parameters, and running it.
#include <algorithm>
#include <cstring>

#include "softgpu/contexts/context.h"
#include "softgpu/contexts/machine.h"
#include "softgpu/device/device.h"
#include "softgpu/graph/work.h"

namespace gpuctl::softgpu {
namespace {

/// Fills the parameter buffer from one of the two forms that a launch may use.
CUresult gather_params(const engine::Kernel& kernel, void** values, void** extra, std::vector<std::byte>* params) {
  params->resize(kernel.param_bytes);
  if (values != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (kernel.params.empty()) return CUDA_SUCCESS;
  if (values != nullptr) {
    for (std::size_t i = 0; i < kernel.params.size(); ++i) {
      if (values[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(params->data() + kernel.params[i].offset, values[i], kernel.params[i].size);
    }
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const void* buffer = nullptr;
  std::size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *static_cast<const std::size_t*>(extra[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  // A program may leave out the padding after the last parameter.
  const engine::Param& last = kernel.params.back();
  if (buffer == nullptr || bytes < last.offset + last.size) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(params->data(), buffer, std::min<std::size_t>(bytes, kernel.param_bytes));
  return CUDA_SUCCESS;
}

CUresult check_shape(const Function& function, const CUDA_KERNEL_NODE_PARAMS& launch) {
  const engine::Kernel& kernel = *function.kernel;
  if (launch.gridDimX == 0 || launch.gridDimY == 0 || launch.gridDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
  if (launch.gridDimX > 0x7fffffff || launch.gridDimY > 65535 || launch.gridDimZ > 65535)
    return CUDA_ERROR_INVALID_VALUE;
  if (launch.blockDimX == 0 || launch.blockDimY == 0 || launch.blockDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
  if (launch.blockDimX > 1024 || launch.blockDimY > 1024 || launch.blockDimZ > 64) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t threads = std::uint64_t{launch.blockDimX} * launch.blockDimY * launch.blockDimZ;
  if (threads > kBlockThreads || threads > kernel.max_threads) return CUDA_ERROR_INVALID_VALUE;
  if (kernel.required.x != 0 && (kernel.required.x != launch.blockDimX || kernel.required.y != launch.blockDimY ||
                                 kernel.required.z != launch.blockDimZ)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (launch.sharedMemBytes > static_cast<unsigned>(function.max_dynamic_shared.load()))
    return CUDA_ERROR_INVALID_VALUE;
  if (kernel.static_shared + launch.sharedMemBytes > kBlockSharedOptin) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  return CUDA_SUCCESS;
}

/// The CUDA error for a fault of the engine. The fault's message says more; SOFTGPU_DEBUG shows it.
CUresult error_of_fault(engine::FaultKind kind) {
  switch (kind) {
    case engine::FaultKind::kAssertion:
      return CUDA_ERROR_ASSERT;
    case engine::FaultKind::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case engine::FaultKind::kMisalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case engine::FaultKind::kIllegalInstruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case engine::FaultKind::kInvalidPc:
      return CUDA_ERROR_INVALID_PC;
    case engine::FaultKind::kStackOverflow:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

/// The urgency of a kernel of that priority among the kernels of all processes.
std::int32_t urgency_of(const Config& config, int priority) {
  if (!config.priorities) return 0;
  constexpr int kLevels = kLeastPriority - kGreatestPriority + 1;
  const int within = kLeastPriority - std::clamp(priority, kGreatestPriority, kLeastPriority);
  return config.below_normal ? within - kLevels : within;
}

}  // namespace

CUresult make_kernel(Machine& machine, const Context& context, const CUDA_KERNEL_NODE_PARAMS& params,
                     KernelWork* work) {
  const CUfunction handle = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  work->function = machine.function(handle, context.device());
  if (work->function == nullptr || work->function->module->device != &context.device())
    return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult checked = check_shape(*work->function, params); checked != CUDA_SUCCESS) return checked;
  work->func = params.func;
  work->kern = params.func != nullptr ? nullptr : params.kern;
  work->launch.program = work->function->program;
  work->launch.kernel = work->function->kernel;
  work->launch.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  work->launch.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  work->launch.dynamic_shared = params.sharedMemBytes;
  work->as_buffer = params.kernelParams == nullptr && params.extra != nullptr;
  return gather_params(*work->function->kernel, params.kernelParams, params.extra, &work->launch.params);
}

CUresult set_attribute(KernelWork& work, CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      if (value.cooperative != 0) return CUDA_ERROR_NOT_SUPPORTED;
      break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:  // those that only tune for speed mean nothing here
      break;
  }
  if (id != CU_LAUNCH_ATTRIBUTE_IGNORE) work.attributes[id] = value;
  return CUDA_SUCCESS;
}

void run_kernel(Machine& machine, Context& context, const KernelWork& work, int priority) {
  KernelLaunch launch = work.launch;
  launch.urgency = urgency_of(machine.config, priority);
  launch.memory = &context.memory();
  Executor& executor = context.device().executor;
  executor.run(launch, context.stopped(), [&](const KernelFault& fault) {
    machine.debug(fault.message);
    context.fail(error_of_fault(
        fault.kind));  // now, not at the kernel's end: its other blocks may wait for the one that faulted
    executor.drop_queued(context.stopped());
  });
  machine.doorbell.ring();
}

}  // namespace gpuctl::softgpu

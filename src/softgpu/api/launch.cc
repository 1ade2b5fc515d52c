// cuLaunchKernel, cuLaunchKernelEx.
#include <cuda.h>

#include <cstring>

#include "softgpu/driver.h"

using namespace gpuctl::softgpu;

namespace {

/// Fills the parameter buffer from one of the two forms a launch may use.
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

CUresult check_shape(const Function& function, const CUlaunchConfig& config) {
  const engine::Kernel& kernel = *function.kernel;
  if (config.gridDimX == 0 || config.gridDimY == 0 || config.gridDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
  if (config.gridDimX > 0x7fffffff || config.gridDimY > 65535 || config.gridDimZ > 65535)
    return CUDA_ERROR_INVALID_VALUE;
  if (config.blockDimX == 0 || config.blockDimY == 0 || config.blockDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
  if (config.blockDimX > 1024 || config.blockDimY > 1024 || config.blockDimZ > 64) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t threads = std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
  if (threads > kBlockThreads || threads > kernel.max_threads) return CUDA_ERROR_INVALID_VALUE;
  if (kernel.required.x != 0 && (kernel.required.x != config.blockDimX || kernel.required.y != config.blockDimY ||
                                 kernel.required.z != config.blockDimZ)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (config.sharedMemBytes > static_cast<unsigned>(function.max_dynamic_shared.load()))
    return CUDA_ERROR_INVALID_VALUE;
  if (kernel.static_shared + config.sharedMemBytes > kBlockSharedOptin) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  return CUDA_SUCCESS;
}

/// What launch attributes ask for; those that only tune for speed mean nothing here.
CUresult read_attributes(const CUlaunchConfig& config, int* priority) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        *priority = attribute.value.priority;
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (attribute.value.cooperative != 0) return CUDA_ERROR_NOT_SUPPORTED;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (attribute.value.clusterDim.x * attribute.value.clusterDim.y * attribute.value.clusterDim.z > 1) {
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return CUDA_ERROR_NOT_SUPPORTED;
      default:
        break;
    }
  }
  return CUDA_SUCCESS;
}

/// Which CUDA error a fault of the engine is. Its message says more, SOFTGPU_DEBUG shows it.
CUresult error_of_fault(const std::string& message) {
  if (message.find("misaligned") != std::string::npos) return CUDA_ERROR_MISALIGNED_ADDRESS;
  if (message.find("assert") != std::string::npos) return CUDA_ERROR_ASSERT;
  if (message.find("address") != std::string::npos) return CUDA_ERROR_ILLEGAL_ADDRESS;
  return CUDA_ERROR_LAUNCH_FAILED;
}

CUresult launch(const CUlaunchConfig& config, CUfunction handle, void** values, void** extra) {
  return with_stream(config.hStream, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    const std::shared_ptr<Function> function = driver.function(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    int priority = stream->priority();
    if (const CUresult checked = check_shape(*function, config); checked != CUDA_SUCCESS) return checked;
    if (const CUresult read = read_attributes(config, &priority); read != CUDA_SUCCESS) return read;
    auto kernel = std::make_shared<KernelLaunch>();
    kernel->program = function->program;
    kernel->kernel = function->kernel;
    kernel->grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
    kernel->block = {config.blockDimX, config.blockDimY, config.blockDimZ};
    kernel->dynamic_shared = config.sharedMemBytes;
    kernel->urgency = driver.config.priorities ? -std::clamp(priority, kGreatestPriority, kLeastPriority) : 0;
    const CUresult gathered = gather_params(*function->kernel, values, extra, &kernel->params);
    if (gathered != CUDA_SUCCESS) return gathered;
    Context* context = stream->context();
    return submit(stream, [&driver, context, kernel] {
      if (context->stopped().load()) return;
      const gpuctl::Result<void> ran = driver.executor.run(*kernel, context->stopped());
      if (ran.has_error()) {
        driver.debug(ran.error().message);
        context->fail(error_of_fault(ran.error().message));
      }
      driver.doorbell.ring();
    });
  });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                unsigned int shared_bytes, CUstream stream, void** params, void** extra) {
  CUlaunchConfig config{};
  config.gridDimX = grid_x;
  config.gridDimY = grid_y;
  config.gridDimZ = grid_z;
  config.blockDimX = block_x;
  config.blockDimY = block_y;
  config.blockDimZ = block_z;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  return launch(config, function, params, extra);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params, void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return launch(*config, function, params, extra);
}

}  // extern "C"

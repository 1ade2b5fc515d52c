#include "softgpu/code/module.h"

#include <algorithm>

#include "softgpu/device/device.h"

namespace gpuctl::softgpu {

const std::shared_ptr<Function>& Kernel::on(const Device& device) const {
  return functions[static_cast<std::size_t>(device.ordinal)];
}

Module::Module(std::shared_ptr<const engine::Program> code, Device& where, Context* of)
    : program(std::move(code)), context(of), device(&where) {
  for (const std::string& name : program->kernel_names()) {
    const Result<const engine::Kernel*> kernel = program->kernel(name);
    if (kernel.has_error()) continue;
    auto function = std::make_shared<Function>();
    function->module = this;
    function->program = program;
    function->kernel = *kernel;
    function->max_dynamic_shared =
        static_cast<int>(kBlockSharedDefault - std::min(kBlockSharedDefault, (*kernel)->static_shared));
    functions.emplace(name, std::move(function));
  }
}

CUresult Function::get_attribute(CUfunction_attribute attribute, int* value) const {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(kernel->max_threads);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(kernel->static_shared);
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = static_cast<int>(kernel->const_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(kernel->local_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(kernel->registers);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = kComputeMajor * 10 + kComputeMinor;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = max_dynamic_shared;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = carveout;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      *value = static_cast<int>(kernel->cluster.x);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      *value = static_cast<int>(kernel->cluster.y);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = static_cast<int>(kernel->cluster.z);
      break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult Function::set_attribute(CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || static_cast<std::uint32_t>(value) + kernel->static_shared > kBlockSharedOptin) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      max_dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      carveout = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Function::param_info(std::size_t index, std::size_t* offset, std::size_t* bytes) const {
  if (index >= kernel->params.size()) return CUDA_ERROR_INVALID_VALUE;
  if (offset != nullptr) *offset = kernel->params[index].offset;
  if (bytes != nullptr) *bytes = kernel->params[index].size;
  return CUDA_SUCCESS;
}

int blocks_per_sm(const engine::Kernel& kernel, int threads, std::size_t dynamic_shared) {
  if (threads <= 0 || static_cast<std::uint32_t>(threads) > kernel.max_threads) return 0;
  if (dynamic_shared > kBlockSharedOptin || kernel.static_shared + dynamic_shared > kBlockSharedOptin) return 0;
  const std::uint32_t shared = occupied_shared(kernel.static_shared + static_cast<std::uint32_t>(dynamic_shared));
  return static_cast<int>(
      std::min({kSmBlocks, kSmThreads / occupied_threads(static_cast<std::uint32_t>(threads)), kSmShared / shared}));
}

}  // namespace gpuctl::softgpu

#include "libgpuslice/base/driver_errors.h"

#include <algorithm>
#include <iterator>

namespace gpuslice {

namespace {

struct Named {
  int error;
  const char* name;
};

/// By number, since older headers lack some of them.
constexpr Named kBreaking[] = {
    {4, "CUDA_ERROR_DEINITIALIZED"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
    {226, "CUDA_ERROR_CONTAINED"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {710, "CUDA_ERROR_ASSERT"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    {718, "CUDA_ERROR_INVALID_PC"},
    {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED"},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE"},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY"},
    {809, "CUDA_ERROR_MPS_CLIENT_TERMINATED"},
    {910, "CUDA_ERROR_EXTERNAL_DEVICE"},
};

const Named* find(CUresult result) {
  const auto* found = std::find_if(std::begin(kBreaking), std::end(kBreaking),
                                   [result](const Named& one) { return one.error == static_cast<int>(result); });
  return found == std::end(kBreaking) ? nullptr : found;
}

}  // namespace

bool breaks_context(CUresult result) {
  return find(result) != nullptr;
}

const char* error_name(CUresult result) {
  const Named* known = find(result);
  return known ? known->name : "an error";
}

}  // namespace gpuslice

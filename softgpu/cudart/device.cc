// cudaGetDevice*, cudaDevice*.
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <cstring>

#include "softgpu/cudart/driver.h"
#include "softgpu/cudart/error.h"

using namespace gpuctl::softgpu::cudart;

namespace {

/// Attributes of one device.
struct Attributes {
  CUdevice device;

  int operator()(CUdevice_attribute which) const {
    int value = 0;
    DRIVER(cuDeviceGetAttribute)(&value, which, device);
    return value;
  }
};

void fill_shape(cudaDeviceProp* prop, const Attributes& attribute) {
  prop->maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  prop->maxThreadsDim[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  prop->maxThreadsDim[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  prop->maxThreadsDim[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  prop->maxGridSize[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  prop->maxGridSize[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  prop->maxGridSize[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  prop->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  prop->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  prop->maxThreadsPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  prop->maxBlocksPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  prop->regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  prop->regsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
}

void fill_memory(cudaDeviceProp* prop, const Attributes& attribute) {
  const auto bytes = [&](CUdevice_attribute which) { return static_cast<std::size_t>(attribute(which)); };
  DRIVER(cuDeviceTotalMem)(&prop->totalGlobalMem, attribute.device);
  prop->sharedMemPerBlock = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  prop->sharedMemPerBlockOptin = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  prop->sharedMemPerMultiprocessor = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  prop->reservedSharedMemPerBlock = bytes(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  prop->totalConstMem = bytes(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  prop->memPitch = bytes(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  prop->textureAlignment = bytes(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  prop->texturePitchAlignment = bytes(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  prop->surfaceAlignment = bytes(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
  prop->l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  prop->memoryBusWidth = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  prop->unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  prop->canMapHostMemory = attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  prop->managedMemory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  prop->concurrentManagedAccess = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  prop->hostRegisterSupported = attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
  prop->canUseHostPointerForRegisteredMem = attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
  prop->hostNativeAtomicSupported = attribute(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
  prop->memoryPoolsSupported = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
}

/// Calls a function of the driver that needs no context.
template <class Function, class... Arguments>
cudaError_t without_context(Function DriverFunctions::*function, Arguments... arguments) {
  const CUresult started = begin();
  return report(started != CUDA_SUCCESS ? started : (driver().*function)(arguments...));
}

cudaError_t check_device(int number) {
  CUdevice device = 0;
  return without_context(&DriverFunctions::p_cuDeviceGet, &device, number);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  if (begin() != CUDA_SUCCESS && count != nullptr) *count = 0;
  return without_context(&DriverFunctions::p_cuDeviceGetCount, count);
}

cudaError_t CUDARTAPI cudaGetDevice(int* number) {
  if (number == nullptr) return report(cudaErrorInvalidValue);
  *number = current_device();
  return report(begin());
}

cudaError_t CUDARTAPI cudaSetDevice(int number) {
  return report(choose_device(number));
}

cudaError_t CUDARTAPI cudaInitDevice(int number, unsigned int, unsigned int) {
  if (const cudaError_t error = check_device(number); error != cudaSuccess) return error;
  CUresult result = CUDA_SUCCESS;
  primary_context(number, &result);
  return report(result);
}

cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned int flags) {
  return without_context(&DriverFunctions::p_cuDevicePrimaryCtxSetFlags, current_device(), flags);
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp* prop, int number) {
  if (prop == nullptr) return report(cudaErrorInvalidValue);
  if (const cudaError_t error = check_device(number); error != cudaSuccess) return error;
  std::memset(static_cast<void*>(prop), 0, sizeof *prop);
  DRIVER(cuDeviceGetName)(prop->name, sizeof prop->name, number);
  DRIVER(cuDeviceGetUuid)(&prop->uuid, number);
  const Attributes attribute{number};
  prop->pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  prop->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  prop->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  prop->integrated = attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED);
  prop->concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  prop->asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  prop->streamPrioritiesSupported = attribute(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
  fill_shape(prop, attribute);
  fill_memory(prop, attribute);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr which, int number) {
  return without_context(&DriverFunctions::p_cuDeviceGetAttribute, value, static_cast<CUdevice_attribute>(which),
                         number);
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char* id, int length, int number) {
  return without_context(&DriverFunctions::p_cuDeviceGetPCIBusId, id, length, number);
}

cudaError_t CUDARTAPI cudaDeviceGetByPCIBusId(int* number, const char* id) {
  return without_context(&DriverFunctions::p_cuDeviceGetByPCIBusId, number, id);
}

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int* can_access, int number, int peer) {
  return without_context(&DriverFunctions::p_cuDeviceCanAccessPeer, can_access, number, peer);
}

cudaError_t CUDARTAPI cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr which, int number, int peer) {
  return without_context(&DriverFunctions::p_cuDeviceGetP2PAttribute, value, static_cast<CUdevice_P2PAttribute>(which),
                         number, peer);
}

cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  CUresult result = enter();
  const CUcontext context = result == CUDA_SUCCESS ? primary_context(peer, &result) : nullptr;
  return report(result == CUDA_SUCCESS ? DRIVER(cuCtxEnablePeerAccess)(context, flags) : result);
}

cudaError_t CUDARTAPI cudaDeviceDisablePeerAccess(int peer) {
  CUresult result = enter();
  const CUcontext context = result == CUDA_SUCCESS ? primary_context(peer, &result) : nullptr;
  return report(result == CUDA_SUCCESS ? DRIVER(cuCtxDisablePeerAccess)(context) : result);
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void) {
  return RUN(cuCtxSynchronize);
}

cudaError_t CUDARTAPI cudaDeviceReset(void) {
  const CUresult result = reset_device();
  if (result == CUDA_SUCCESS) {
    DRIVER(cuCtxSetCurrent)(nullptr);
    forget_faults();
  }
  return report(result);
}

cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return RUN(cuCtxGetStreamPriorityRange, least, greatest);
}

cudaError_t CUDARTAPI cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  return RUN(cuCtxSetLimit, static_cast<CUlimit>(limit), value);
}

cudaError_t CUDARTAPI cudaDeviceGetLimit(size_t* value, enum cudaLimit limit) {
  return RUN(cuCtxGetLimit, value, static_cast<CUlimit>(limit));
}

cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned int* flags) {
  return RUN(cuCtxGetFlags, flags);
}

cudaError_t CUDARTAPI cudaDeviceGetCacheConfig(enum cudaFuncCache* config) {
  return RUN(cuCtxGetCacheConfig, reinterpret_cast<CUfunc_cache*>(config));
}

cudaError_t CUDARTAPI cudaDeviceSetCacheConfig(enum cudaFuncCache config) {
  return RUN(cuCtxSetCacheConfig, static_cast<CUfunc_cache>(config));
}

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                                       unsigned long long flags,
                                                       enum cudaDriverEntryPointQueryResult* status) {
  const CUresult entered = enter();
  if (entered != CUDA_SUCCESS) return report(entered);
  CUdriverProcAddressQueryResult why = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = DRIVER(cuGetProcAddress)(symbol, function, static_cast<int>(version), flags, &why);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(why);
  return result == CUDA_ERROR_NOT_FOUND && status != nullptr ? cudaSuccess : report(result);
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  if (version == nullptr) return report(cudaErrorInvalidValue);
  *version = 0;
  return driver().found ? report(DRIVER(cuDriverGetVersion)(version)) : cudaSuccess;
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return report(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaProfilerStart(void) {
  return RUN(cuProfilerStart);
}

cudaError_t CUDARTAPI cudaProfilerStop(void) {
  return RUN(cuProfilerStop);
}

}  // extern "C"

#include "kernels/run/gpu.h"

namespace gpuctl::bench {

Gpu::Gpu() {
  CUDA_CALL(cuInit, 0);
  CUDA_CALL(cuDeviceGet, &device_, 0);
  char name[256] = {};
  CUDA_CALL(cuDeviceGetName, name, sizeof name, device_);
  name_ = name;
  CUDA_CALL(cuDeviceGetAttribute, &sms_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_);
  CUcontext context = nullptr;
  CUDA_CALL(cuDevicePrimaryCtxRetain, &context, device_);
  CUDA_CALL(cuCtxSetCurrent, context);
}

Stream::Stream(Priority priority) {
  int least = 0;
  int greatest = 0;
  CUDA_CALL(cuCtxGetStreamPriorityRange, &least, &greatest);
  const int value = priority == Priority::kHigh ? greatest : priority == Priority::kLow ? least : 0;
  CUDA_CALL(cuStreamCreateWithPriority, &stream_, CU_STREAM_NON_BLOCKING, value);
}

Event::Event(bool timed) {
  CUDA_CALL(cuEventCreate, &event_, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
}

DeviceMemory::DeviceMemory(std::size_t bytes) {
  CUDA_CALL(cuMemAlloc_v2, &address_, bytes);
}

PinnedWords::PinnedWords(std::size_t words) {
  void* memory = nullptr;
  CUDA_CALL(cuMemAllocHost_v2, &memory, words * sizeof(std::uint32_t));
  words_ = static_cast<std::uint32_t*>(memory);
}

CUmodule load_module(std::string_view ptx) {
  CUmodule module = nullptr;
  CUDA_CALL(cuModuleLoadData, &module, ptx.data());
  return module;
}

CUfunction find_entry(CUmodule module, std::string_view entry) {
  CUfunction function = nullptr;
  CUDA_CALL(cuModuleGetFunction, &function, module, std::string(entry).c_str());
  return function;
}

}  // namespace gpuctl::bench

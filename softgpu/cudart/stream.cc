// cudaStream*, cudaEvent*, cudaLaunchHostFunc.
#include <cuda_runtime_api.h>

#include <memory>

#include "softgpu/cudart/driver.h"
#include "softgpu/cudart/error.h"

using namespace gpuctl::softgpu::cudart;

namespace {

/// A callback of the runtime differs from the driver's in the type of its error.
struct Callback {
  cudaStreamCallback_t function;
  void* data;
};

void run_callback(CUstream stream, CUresult result, void* data) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
  callback->function(stream, static_cast<cudaError_t>(result), callback->data);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* stream) {
  return RUN(cuStreamCreate, stream, 0);
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return RUN(cuStreamCreate, stream, flags);
}

cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return RUN(cuStreamCreateWithPriority, stream, flags, priority);
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) {
  return RUN(cuStreamDestroy, stream);
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream) {
  return RUN(cuStreamSynchronize, stream);
}

cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream) {
  return RUN(cuStreamQuery, stream);
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return RUN(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return RUN(cuStreamGetPriority, stream, priority);
}

// The runtime's attributes are the driver's by another name.
cudaError_t CUDARTAPI cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                             const cudaStreamAttrValue* value) {
  return RUN(cuStreamSetAttribute, stream, static_cast<CUstreamAttrID>(attribute),
             reinterpret_cast<const CUstreamAttrValue*>(value));
}

cudaError_t CUDARTAPI cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                             cudaStreamAttrValue* value) {
  return RUN(cuStreamGetAttribute, stream, static_cast<CUstreamAttrID>(attribute),
             reinterpret_cast<CUstreamAttrValue*>(value));
}

cudaError_t CUDARTAPI cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return RUN(cuStreamCopyAttributes, to, from);
}

cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return RUN(cuStreamGetFlags, stream, flags);
}

cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return RUN(cuStreamGetId, stream, id);
}

cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  return RUN(cuStreamIsCapturing, stream, reinterpret_cast<CUstreamCaptureStatus*>(status));
}

cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data,
                                            unsigned int flags) {
  if (function == nullptr) return report(cudaErrorInvalidValue);
  auto callback = std::make_unique<Callback>(Callback{function, data});
  const cudaError_t error = RUN(cuStreamAddCallback, stream, run_callback, callback.get(), flags);
  if (error == cudaSuccess) (void)callback.release();  // run_callback owns it now
  return error;
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return RUN(cuLaunchHostFunc, stream, function, data);
}

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* event) {
  return RUN(cuEventCreate, event, 0);
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return RUN(cuEventCreate, event, flags);
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) {
  return RUN(cuEventDestroy, event);
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return RUN(cuEventRecord, event, stream);
}

cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return RUN(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event) {
  return RUN(cuEventQuery, event);
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event) {
  return RUN(cuEventSynchronize, event);
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return RUN(cuEventElapsedTime, milliseconds, begin, end);
}

}  // extern "C"

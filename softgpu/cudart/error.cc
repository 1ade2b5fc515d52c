// cudaGetLastError and the names of errors.
#include "softgpu/cudart/error.h"

#include <cuda_runtime_api.h>

#include <atomic>

namespace gpuctl::softgpu::cudart {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local unsigned noted_in = 0;  ///< `device_resets` when it was noted
std::atomic<unsigned> device_resets{0};

/// Whether the error leaves a context broken.
bool is_fault(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

struct ErrorRow {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define ROW(error, text) \
  { error, #error, text }
constexpr ErrorRow kErrors[] = {
    ROW(cudaSuccess, "no error"),
    ROW(cudaErrorInvalidValue, "an argument has a value that is not allowed"),
    ROW(cudaErrorMemoryAllocation, "not enough memory"),
    ROW(cudaErrorCudartUnloading, "the driver is shutting down"),
    ROW(cudaErrorInitializationError, "the driver could not be initialised in this process"),
    ROW(cudaErrorInvalidConfiguration, "the launch asks for a grid or block that is not possible"),
    ROW(cudaErrorInvalidSymbol, "the symbol is not known"),
    ROW(cudaErrorMissingConfiguration, "a kernel was called without a launch configuration"),
    ROW(cudaErrorInvalidDeviceFunction, "the kernel is not known, or this device cannot run it"),
    ROW(cudaErrorNoDevice, "there is no CUDA driver or no device"),
    ROW(cudaErrorInvalidDevice, "there is no device of that number"),
    ROW(cudaErrorInvalidKernelImage, "the device code is neither PTX nor a fatbin"),
    ROW(cudaErrorDeviceUninitialized, "no usable context is current"),
    ROW(cudaErrorNoKernelImageForDevice, "the program holds no PTX that this device can run"),
    ROW(cudaErrorHostMemoryAlreadyRegistered, "the memory is registered already"),
    ROW(cudaErrorHostMemoryNotRegistered, "the memory is not registered"),
    ROW(cudaErrorInvalidPtx, "the PTX text has an error"),
    ROW(cudaErrorOperatingSystem, "the operating system refused something"),
    ROW(cudaErrorInvalidResourceHandle, "a handle is not known"),
    ROW(cudaErrorSymbolNotFound, "there is nothing of that name"),
    ROW(cudaErrorNotReady, "the work is not over yet"),
    ROW(cudaErrorIllegalAddress, "a kernel touched memory that is not its own"),
    ROW(cudaErrorLaunchOutOfResources, "the block needs more than an SM has"),
    ROW(cudaErrorContextIsDestroyed, "the context has been destroyed"),
    ROW(cudaErrorAssert, "a device-side assertion failed"),
    ROW(cudaErrorMisalignedAddress, "a kernel used a misaligned address"),
    ROW(cudaErrorLaunchTimeout, "the kernel took too long"),
    ROW(cudaErrorHardwareStackError, "a kernel's call stack overflowed"),
    ROW(cudaErrorIllegalInstruction, "a kernel has an instruction that cannot be executed"),
    ROW(cudaErrorInvalidAddressSpace, "a kernel used an address of the wrong space"),
    ROW(cudaErrorInvalidPc, "a kernel went to where there is no code"),
    ROW(cudaErrorLaunchFailure, "a kernel failed"),
    ROW(cudaErrorCooperativeLaunchTooLarge, "the cooperative grid does not fit the device"),
    ROW(cudaErrorInvalidClusterSize, "no clusters of that size run there"),
    ROW(cudaErrorNotPermitted, "the operation is not permitted"),
    ROW(cudaErrorIllegalState, "that is not possible in this state"),
    ROW(cudaErrorStreamCaptureUnsupported, "the operation cannot be captured"),
    ROW(cudaErrorStreamCaptureInvalidated, "an earlier error broke the capture"),
    ROW(cudaErrorStreamCaptureMerge, "the operation would merge two captures"),
    ROW(cudaErrorStreamCaptureUnmatched, "the capture was begun in another stream"),
    ROW(cudaErrorStreamCaptureUnjoined, "a stream of the capture was not joined"),
    ROW(cudaErrorStreamCaptureIsolation, "a captured operation would depend on one that is not"),
    ROW(cudaErrorStreamCaptureImplicit, "the legacy default stream cannot take part in a capture"),
    ROW(cudaErrorCapturedEvent, "the event was last recorded in a capture"),
    ROW(cudaErrorStreamCaptureWrongThread, "the capture belongs to another thread"),
    ROW(cudaErrorGraphExecUpdateFailure, "the executable graph cannot be updated that way"),
    ROW(cudaErrorInvalidMemcpyDirection, "the direction of the copy is not one"),
    ROW(cudaErrorNotSupported, "the software GPU does not offer this"),
    ROW(cudaErrorUnknown, "unknown error"),
};
#undef ROW

const ErrorRow* find(cudaError_t error) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

}  // namespace

cudaError_t report(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) {
    last_error = error;
    noted_in = device_resets.load();
  }
  return error;
}

void forget_faults() {
  ++device_resets;
}

cudaError_t peek_last_error() {
  if (is_fault(last_error) && noted_in != device_resets.load()) last_error = cudaSuccess;
  return last_error;
}

cudaError_t take_last_error() {
  const cudaError_t error = peek_last_error();
  if (!is_fault(error)) last_error = cudaSuccess;
  return error;
}

}  // namespace gpuctl::softgpu::cudart

using namespace gpuctl::softgpu::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaGetLastError(void) {
  return take_last_error();
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void) {
  return peek_last_error();
}

const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  const ErrorRow* row = find(error);
  return row != nullptr ? row->name : "unrecognized error code";
}

const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  const ErrorRow* row = find(error);
  return row != nullptr ? row->text : "unrecognized error code";
}

}  // extern "C"

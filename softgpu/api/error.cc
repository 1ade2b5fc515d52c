// cuGetErrorName, cuGetErrorString.
#include <cuda.h>

namespace {

struct ErrorRow {
  CUresult error;
  const char* name;
  const char* text;
};

#define ROW(error, text) \
  { error, #error, text }
constexpr ErrorRow kErrors[] = {
    ROW(CUDA_SUCCESS, "no error"),
    ROW(CUDA_ERROR_INVALID_VALUE, "an argument has a value that is not allowed"),
    ROW(CUDA_ERROR_OUT_OF_MEMORY, "not enough memory"),
    ROW(CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called in this process"),
    ROW(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"),
    ROW(CUDA_ERROR_NO_DEVICE, "there is no GPU"),
    ROW(CUDA_ERROR_INVALID_DEVICE, "there is no device of that number"),
    ROW(CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor a fatbin"),
    ROW(CUDA_ERROR_INVALID_CONTEXT, "no usable context is current"),
    ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image holds no PTX this device can run"),
    ROW(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the memory is registered already"),
    ROW(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the memory is not registered"),
    ROW(CUDA_ERROR_INVALID_PTX, "the PTX text has an error"),
    ROW(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "contexts cannot be confined to some SMs here"),
    ROW(CUDA_ERROR_INVALID_SOURCE, "the source is not valid"),
    ROW(CUDA_ERROR_FILE_NOT_FOUND, "the file cannot be read"),
    ROW(CUDA_ERROR_OPERATING_SYSTEM, "the operating system refused something"),
    ROW(CUDA_ERROR_INVALID_HANDLE, "a handle is not known"),
    ROW(CUDA_ERROR_NOT_FOUND, "there is nothing of that name"),
    ROW(CUDA_ERROR_NOT_READY, "the work is not over yet"),
    ROW(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel touched memory that is not its own"),
    ROW(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the block needs more than an SM has"),
    ROW(CUDA_ERROR_LAUNCH_TIMEOUT, "the kernel took too long"),
    ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context has been destroyed"),
    ROW(CUDA_ERROR_ASSERT, "a device-side assertion failed"),
    ROW(CUDA_ERROR_MISALIGNED_ADDRESS, "a kernel used a misaligned address"),
    ROW(CUDA_ERROR_HARDWARE_STACK_ERROR, "a kernel's call stack overflowed"),
    ROW(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a kernel has an instruction that cannot be executed"),
    ROW(CUDA_ERROR_INVALID_ADDRESS_SPACE, "a kernel used an address of the wrong space"),
    ROW(CUDA_ERROR_INVALID_PC, "a kernel went to where there is no code"),
    ROW(CUDA_ERROR_LAUNCH_FAILED, "a kernel failed"),
    ROW(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "the cooperative grid does not fit the device"),
    ROW(CUDA_ERROR_INVALID_CLUSTER_SIZE, "no clusters of that size run there"),
    ROW(CUDA_ERROR_NOT_PERMITTED, "the operation is not permitted"),
    ROW(CUDA_ERROR_NOT_SUPPORTED, "the software GPU does not offer this"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the operation cannot be captured"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error broke the capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the operation would merge two captures"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture was begun in another stream"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a stream of the capture was not joined"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a captured operation would depend on one that is not"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the legacy default stream cannot take part in a capture"),
    ROW(CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a capture"),
    ROW(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture belongs to another thread"),
    ROW(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the executable graph cannot be updated that way"),
    ROW(CUDA_ERROR_ILLEGAL_STATE, "that is not possible in this state"),
    ROW(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef ROW

const ErrorRow* find(CUresult error) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorRow* row = find(error);
  *name = row == nullptr ? nullptr : row->name;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorRow* row = find(error);
  *text = row == nullptr ? nullptr : row->text;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // extern "C"

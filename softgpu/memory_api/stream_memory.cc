// cuStreamWaitValue*, cuStreamWriteValue*, cuStreamBatchMemOp.
#include <cuda.h>

#include <vector>

#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

CUresult batch(CUstream handle, std::vector<CUstreamBatchMemOpParams> steps, const char* call = __builtin_FUNCTION()) {
  return with_stream(
      handle,
      [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
        const CUresult checked = check_batch(driver, steps);
        return checked == CUDA_SUCCESS ? perform(driver, stream, BatchWork{std::move(steps)}) : checked;
      },
      call);
}

template <class T>
CUresult wait_value(CUstream handle, CUdeviceptr address, T value, unsigned flags,
                    const char* call = __builtin_FUNCTION()) {
  CUstreamBatchMemOpParams step{};
  step.waitValue.operation = sizeof(T) == 8 ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
  step.waitValue.address = address;
  step.waitValue.value64 = value;  // its low word is `value`
  step.waitValue.flags = flags;
  return batch(handle, {step}, call);
}

template <class T>
CUresult write_value(CUstream handle, CUdeviceptr address, T value, unsigned flags,
                     const char* call = __builtin_FUNCTION()) {
  CUstreamBatchMemOpParams step{};
  step.writeValue.operation = sizeof(T) == 8 ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
  step.writeValue.address = address;
  step.writeValue.value64 = value;
  step.writeValue.flags = flags;
  return batch(handle, {step}, call);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return wait_value<std::uint32_t>(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return wait_value<std::uint64_t>(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return write_value<std::uint32_t>(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return write_value<std::uint64_t>(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream handle, unsigned int count, CUstreamBatchMemOpParams* entries,
                                       unsigned int flags) {
  if (flags != 0 || count > 256 || (count != 0 && entries == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return batch(handle, {entries, entries + count});
}

}  // extern "C"

// cuStreamWaitValue*, cuStreamWriteValue*, cuStreamBatchMemOp.
//
// A wait looks at its word at least every 50 us; kernels, copies and written values of this process ring the doorbell,
// so that the usual end of a wait is noticed at once.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "softgpu/driver.h"

using namespace gpuctl::softgpu;
using namespace std::chrono_literals;

namespace {

constexpr auto kFirstPoll = 5us;
constexpr auto kSlowestPoll = 50us;

template <class T>
T read_word(CUdeviceptr address) {
  return __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_ACQUIRE);
}

template <class T>
bool holds(T now, T value, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default:
      return static_cast<T>(~(now | value)) != 0;
  }
}

/// One entry of a batch, checked and ready to run.
using Step = std::function<void()>;

template <class T>
CUresult make_wait(Driver& driver, Context* context, CUdeviceptr address, T value, unsigned flags, Step* step) {
  const unsigned condition = flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
  if (condition > CU_STREAM_WAIT_VALUE_NOR || address % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!driver.memory.covers(address, sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
  *step = [=, &driver] {
    std::chrono::nanoseconds interval = kFirstPoll;
    while (!context->stopped().load()) {
      const std::uint64_t rung = driver.doorbell.count();
      if (holds(read_word<T>(address), value, condition)) return;
      driver.doorbell.wait(rung, interval);
      interval = std::min<std::chrono::nanoseconds>(interval * 2, kSlowestPoll);
    }
  };
  return CUDA_SUCCESS;
}

template <class T>
CUresult make_write(Driver& driver, Context* context, CUdeviceptr address, T value, unsigned flags, Step* step) {
  if (flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER || address % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!driver.memory.covers(address, sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
  *step = [=, &driver] {
    if (context->stopped().load()) return;
    __atomic_store_n(reinterpret_cast<T*>(address), value, __ATOMIC_RELEASE);
    driver.doorbell.ring();
  };
  return CUDA_SUCCESS;
}

CUresult make_step(Driver& driver, Context* context, const CUstreamBatchMemOpParams& entry, Step* step) {
  switch (entry.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return make_wait<std::uint32_t>(driver, context, entry.waitValue.address, entry.waitValue.value,
                                      entry.waitValue.flags, step);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return make_wait<std::uint64_t>(driver, context, entry.waitValue.address, entry.waitValue.value64,
                                      entry.waitValue.flags, step);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return make_write<std::uint32_t>(driver, context, entry.writeValue.address, entry.writeValue.value,
                                       entry.writeValue.flags, step);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return make_write<std::uint64_t>(driver, context, entry.writeValue.address, entry.writeValue.value64,
                                       entry.writeValue.flags, step);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      *step = [] {};
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

template <class T>
CUresult wait_value(CUstream handle, CUdeviceptr address, T value, unsigned flags) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    Step step;
    const CUresult made = make_wait<T>(driver, stream->context(), address, value, flags, &step);
    return made == CUDA_SUCCESS ? submit(stream, step) : made;
  });
}

template <class T>
CUresult write_value(CUstream handle, CUdeviceptr address, T value, unsigned flags) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    Step step;
    const CUresult made = make_write<T>(driver, stream->context(), address, value, flags, &step);
    return made == CUDA_SUCCESS ? submit(stream, step) : made;
  });
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
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (flags != 0 || count > 256 || (count != 0 && entries == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Step> steps(count);
    for (unsigned i = 0; i < count; ++i) {
      const CUresult made = make_step(driver, stream->context(), entries[i], &steps[i]);
      if (made != CUDA_SUCCESS) return made;
    }
    return submit(stream, [steps] {
      for (const Step& step : steps) step();
    });
  });
}

}  // extern "C"

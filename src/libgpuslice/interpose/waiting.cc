// Calls after which a stream may wait for the host, or for something else than the GPU. The stream is noted
// (waiting_streams.h), and the call goes to the driver unchanged.
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/own_streams.h"
#include "libgpuslice/streams/waiting_streams.h"

// Older functions with these names, which cuda.h no longer declares. They take the same parameters.
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamBatchMemOp

namespace gpuslice {

namespace {

using Wait = WaitingStreams::Wait;

/// While the stream waits for a value, nothing may be on its way into streams of ours (own_streams.h).
template <class Call>
CUresult put(CUstream stream, Wait wait, Call call) {
  if (!Client::get().wanted() || capturing(stream)) return call();
  return nothrow([&] {
    const WaitingStreams::Putting putting(WaitingStreams::get(), stream, wait);
    if (wait == Wait::kValue && !may_use_own_streams(kQueuesToMove)) join_all();
    return call();
  });
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

/// Defines NAME and NAME_ptsz, which both call the driver's NAME. `stream` is one of the parameters.
#define GPUSLICE_WAITING(name, wait, parameters, arguments)                                                     \
  static CUresult put_##name(bool per_thread, CUresult(CUDAAPI* real) parameters, GPUSLICE_UNPACK parameters) { \
    if (!real) return CUDA_ERROR_NOT_INITIALIZED;                                                               \
    stream = explicit_stream(stream, per_thread);                                                               \
    const StreamCall in_flight(stream);                                                                         \
    return put(stream, wait, [&] { return real arguments; });                                                   \
  }                                                                                                             \
  static auto real_##name() {                                                                                   \
    static const auto real = reinterpret_cast<CUresult(CUDAAPI*) parameters>(libcuda_function(#name));          \
    return real;                                                                                                \
  }                                                                                                             \
  GPUSLICE_HOOK name parameters {                                                                               \
    return put_##name(false, real_##name(), GPUSLICE_UNPACK arguments);                                         \
  }                                                                                                             \
  GPUSLICE_HOOK name##_ptsz parameters {                                                                        \
    return put_##name(true, real_##name(), GPUSLICE_UNPACK arguments);                                          \
  }
#define GPUSLICE_UNPACK(...) __VA_ARGS__

GPUSLICE_WAITING(cuLaunchHostFunc, Wait::kAny, (CUstream stream, CUhostFn function, void* data),
                 (stream, function, data))
GPUSLICE_WAITING(cuLaunchHostFunc_v2, Wait::kAny,
                 (CUstream stream, CUhostFn function, void* data, unsigned synchronisation),
                 (stream, function, data, synchronisation))
GPUSLICE_WAITING(cuStreamAddCallback, Wait::kAny,
                 (CUstream stream, CUstreamCallback callback, void* data, unsigned flags),
                 (stream, callback, data, flags))
GPUSLICE_WAITING(cuStreamWaitValue32, Wait::kValue,
                 (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),
                 (stream, address, value, flags))
GPUSLICE_WAITING(cuStreamWaitValue32_v2, Wait::kValue,
                 (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags),
                 (stream, address, value, flags))
GPUSLICE_WAITING(cuStreamWaitValue64, Wait::kValue,
                 (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),
                 (stream, address, value, flags))
GPUSLICE_WAITING(cuStreamWaitValue64_v2, Wait::kValue,
                 (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags),
                 (stream, address, value, flags))
GPUSLICE_WAITING(cuStreamBatchMemOp, Wait::kValue,
                 (CUstream stream, unsigned count, CUstreamBatchMemOpParams* entries, unsigned flags),
                 (stream, count, entries, flags))
GPUSLICE_WAITING(cuStreamBatchMemOp_v2, Wait::kValue,
                 (CUstream stream, unsigned count, CUstreamBatchMemOpParams* entries, unsigned flags),
                 (stream, count, entries, flags))
GPUSLICE_WAITING(cuWaitExternalSemaphoresAsync, Wait::kValue,
                 (const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* waits,
                  unsigned count, CUstream stream),
                 (semaphores, waits, count, stream))

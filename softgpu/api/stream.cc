// cuStream* except memory operations, cuEvent*, cuLaunchHostFunc.
#include <cuda.h>

#include "softgpu/device/printed.h"
#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

CUresult create_stream(CUstream* result, unsigned flags, int priority, const char* call = __builtin_FUNCTION()) {
  return with_context(
      [&](Driver& driver, Context& context) {
        if (result == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        const auto kind = flags == CU_STREAM_NON_BLOCKING ? Stream::Kind::kNonBlocking : Stream::Kind::kBlocking;
        *result = driver.streams.add(context.create_stream(kind, priority));
        return CUDA_SUCCESS;
      },
      call);
}

bool stream_idle(const std::shared_ptr<Stream>& stream) {
  if (stream->kind() == Stream::Kind::kLegacy) return stream->context()->legacy_idle();
  return stream->finished(stream->last());
}

CUresult elapsed(float* milliseconds, CUevent begin, CUevent end, const char* call = __builtin_FUNCTION()) {
  return with_driver(
      [&](Driver& driver) {
        const std::shared_ptr<Event> events[] = {driver.events.find(begin), driver.events.find(end)};
        if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
        for (const auto& event : events) {
          if (event == nullptr || (event->flags() & CU_EVENT_DISABLE_TIMING) != 0 || event->recording() == nullptr) {
            return CUDA_ERROR_INVALID_HANDLE;
          }
          if (event->context()->error() != CUDA_SUCCESS) return event->context()->error();
        }
        const std::shared_ptr<Recording> first = events[0]->recording();
        const std::shared_ptr<Recording> second = events[1]->recording();
        if (!first->passed() || !second->passed()) return CUDA_ERROR_NOT_READY;
        *milliseconds = std::chrono::duration<float, std::milli>(second->time() - first->time()).count();
        return CUDA_SUCCESS;
      },
      call);
}

/// Whether captures allow the host to query an event, or to wait for it.
CUresult check_host_wait(Driver& driver, const Event& event) {
  const CUresult captured = driver.captures.check_event(event);
  return captured != CUDA_SUCCESS ? captured : driver.captures.check_unsafe();
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamCreate(CUstream* result, unsigned int flags) {
  return create_stream(result, flags, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* result, unsigned int flags, int priority) {
  return create_stream(result, flags, priority);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Stream> stream = driver.streams.remove(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    driver.captures.forget(*stream);
    stream->context()->remove_stream(stream);
    return stream->error();  // the stream is gone in any case
  });
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  const WritesWhatWasPrinted writes;
  return with_stream(handle, [](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (const CUresult refused = driver.captures.check_wait(*stream); refused != CUDA_SUCCESS) return refused;
    // For the legacy stream the wait includes the blocking streams: an empty operation depends on all of them.
    if (stream->kind() == Stream::Kind::kLegacy) return submit_and_wait(stream, [] {});
    stream->wait_unless_stopped(stream->last());
    return stream->context()->error();
  });
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  return with_stream(handle, [](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (const CUresult refused = driver.captures.check_wait(*stream); refused != CUDA_SUCCESS) return refused;
    return stream_idle(stream) ? stream->context()->error() : static_cast<CUresult>(CUDA_ERROR_NOT_READY);
  });
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  return with_stream(handle, [&](Driver&, const std::shared_ptr<Stream>& stream) {
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return with_stream(handle, [&](Driver&, const std::shared_ptr<Stream>& stream) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->kind() == Stream::Kind::kNonBlocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long* id) {
  return with_stream(handle, [&](Driver&, const std::shared_ptr<Stream>& stream) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = stream->context()->id() << 32 | stream->id();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return with_stream(handle, [&](Driver&, const std::shared_ptr<Stream>& stream) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = reinterpret_cast<CUcontext>(stream->context());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return with_stream(handle, [&](Driver&, const std::shared_ptr<Stream>& stream) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = stream->context()->device().ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    const std::shared_ptr<Event> event = driver.events.find(event_handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    bool done = false;
    const CUresult captured = driver.captures.wait(stream, event, flags == CU_EVENT_WAIT_EXTERNAL, &done);
    if (done || captured != CUDA_SUCCESS) return captured;
    const std::shared_ptr<Recording> recording = event->recording();
    if (recording == nullptr || recording->passed()) return CUDA_SUCCESS;
    return submit(
        stream, [recording, context = stream->context()] { recording->wait_unless(context->stopped()); }, true);
  });
}

CUresult CUDAAPI cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned int flags) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult refused = driver.captures.check_wait(*stream); refused != CUDA_SUCCESS) return refused;
    Context* context = stream->context();
    return submit(
        stream, [=] { callback(handle, context->error(), data); }, true);
  });
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return perform(driver, stream, HostWork{function, data});
  });
}

CUresult CUDAAPI cuEventCreate(CUevent* result, unsigned int flags) {
  return with_context([&](Driver& driver, Context& context) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    *result = driver.events.add(std::make_shared<Event>(&context, flags));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent handle) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Event> event = driver.events.remove(handle);
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : event->context()->error();  // it is gone in any case
  });
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags) {
  return with_stream(stream_handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    const std::shared_ptr<Event> event = driver.events.find(handle);
    if (event == nullptr || event->context() != stream->context()) return CUDA_ERROR_INVALID_HANDLE;
    if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    bool capturing = false;
    const CUresult refused = driver.captures.check_work(*stream, &capturing);
    if (refused != CUDA_SUCCESS) return refused;
    if (capturing && flags == CU_EVENT_RECORD_EXTERNAL) return driver.captures.add(*stream, RecordWork{event});
    if (capturing) return driver.captures.record(*stream, *event);
    if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    const auto recording = std::make_shared<Recording>();
    const CUresult submitted =
        submit(stream, [recording, its = stream.get()] { its->at_completion([recording] { recording->pass(); }); });
    if (submitted == CUDA_SUCCESS) event->set(recording);
    return submitted;
  });
}

CUresult CUDAAPI cuEventRecord(CUevent handle, CUstream stream) {
  return cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Event> event = driver.events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult refused = check_host_wait(driver, *event); refused != CUDA_SUCCESS) return refused;
    if (event->context()->error() != CUDA_SUCCESS) return event->context()->error();
    const std::shared_ptr<Recording> recording = event->recording();
    return recording == nullptr || recording->passed() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  const WritesWhatWasPrinted writes;
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Event> event = driver.events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult refused = check_host_wait(driver, *event); refused != CUDA_SUCCESS) return refused;
    if (const std::shared_ptr<Recording> recording = event->recording())
      recording->wait_unless(event->context()->stopped());
    return event->context()->error();
  });
}

CUresult CUDAAPI cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  return elapsed(milliseconds, begin, end);
}

}  // extern "C"

// The priorities of streams. The program sees its own values; the driver gets those within the slice's band
// (stream_priority.h).
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/stream_priority.h"

namespace gpuslice {

namespace {

/// `call` makes a stream for which the program has this priority. The stream may have the handle of one that is gone.
template <class Call>
CUresult make_stream(CUstream* stream, int own, Call call) {
  const CUresult result = call();
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  StreamPriorities::get().made(*stream, own);
  return result;
}

CUresult get_priority(CUstream stream, int* priority) {
  return nothrow([&] {
    if (!driver().cuStreamGetPriority) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = driver().cuStreamGetPriority(stream, priority);
    if (const auto own = StreamPriorities::get().own(stream); result == CUDA_SUCCESS && own) *priority = *own;
    return result;
  });
}

CUresult get_attribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  return nothrow([&] {
    if (!driver().cuStreamGetAttribute) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = driver().cuStreamGetAttribute(stream, id, value);
    if (result != CUDA_SUCCESS || id != CU_LAUNCH_ATTRIBUTE_PRIORITY) return result;
    if (const auto own = StreamPriorities::get().own(stream)) value->priority = *own;
    return result;
  });
}

CUresult set_attribute(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  return nothrow([&] {
    if (!driver().cuStreamSetAttribute) return CUDA_ERROR_NOT_INITIALIZED;
    join_before(stream);
    if (id != CU_LAUNCH_ATTRIBUTE_PRIORITY || !value) return driver().cuStreamSetAttribute(stream, id, value);
    CUstreamAttrValue ours = *value;
    ours.priority = StreamPriorities::get().for_new(value->priority);
    const CUresult result = driver().cuStreamSetAttribute(stream, id, &ours);
    if (result != CUDA_SUCCESS) return result;
    StreamPriorities::get().made(stream, value->priority);
    return result;
  });
}

/// The program's own value is copied together with the driver's.
CUresult copy_attributes(CUstream to, CUstream from) {
  return nothrow([&] {
    if (!driver().cuStreamCopyAttributes) return CUDA_ERROR_NOT_INITIALIZED;
    join_before(to);
    const CUresult result = driver().cuStreamCopyAttributes(to, from);
    if (result != CUDA_SUCCESS) return result;
    StreamPriorities::get().copied(to, from);
    return result;
  });
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuStreamCreate(CUstream* stream, unsigned flags) {
  return nothrow([&] {
    if (!driver().cuStreamCreate) return CUDA_ERROR_NOT_INITIALIZED;
    if (!stream) return driver().cuStreamCreate(stream, flags);
    return make_stream(stream, 0, [&] {
      const int priority = driver().cuStreamCreateWithPriority ? StreamPriorities::get().for_new(0) : 0;
      // Unchanged if the priority needs no change.
      if (priority == 0) return driver().cuStreamCreate(stream, flags);
      return driver().cuStreamCreateWithPriority(stream, flags, priority);
    });
  });
}

GPUSLICE_HOOK cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return nothrow([&] {
    if (!driver().cuStreamCreateWithPriority) return CUDA_ERROR_NOT_INITIALIZED;
    if (!stream) return driver().cuStreamCreateWithPriority(stream, flags, priority);
    return make_stream(stream, priority, [&] {
      return driver().cuStreamCreateWithPriority(stream, flags, StreamPriorities::get().for_new(priority));
    });
  });
}

GPUSLICE_HOOK cuStreamGetPriority(CUstream stream, int* priority) {
  return get_priority(explicit_stream(stream, false), priority);
}
GPUSLICE_HOOK cuStreamGetPriority_ptsz(CUstream stream, int* priority) {
  return get_priority(explicit_stream(stream, true), priority);
}

GPUSLICE_HOOK cuStreamGetAttribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  return get_attribute(explicit_stream(stream, false), id, value);
}
GPUSLICE_HOOK cuStreamGetAttribute_ptsz(CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  return get_attribute(explicit_stream(stream, true), id, value);
}
GPUSLICE_HOOK cuStreamSetAttribute(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  return set_attribute(explicit_stream(stream, false), id, value);
}
GPUSLICE_HOOK cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  return set_attribute(explicit_stream(stream, true), id, value);
}
GPUSLICE_HOOK cuStreamCopyAttributes(CUstream to, CUstream from) {
  return copy_attributes(explicit_stream(to, false), explicit_stream(from, false));
}
GPUSLICE_HOOK cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) {
  return copy_attributes(explicit_stream(to, true), explicit_stream(from, true));
}

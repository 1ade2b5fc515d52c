// Streams: notes captures, and what streams wait for.
#include <cstdint>

#include "libgpuslice/agent/bursts.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/interpose/joining_functions.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/stream_priority.h"
#include "libgpuslice/streams/waiting_streams.h"

namespace gpuslice {

namespace {

/// Gives the stream its level of now, which its kernels keep, and notes the capture before it begins.
template <class Begin>
CUresult begin(CUstream stream, Begin call) {
  return nothrow([&] {
    if (Client::get().wanted() && !capturing(stream)) StreamPriorities::get().before_launch(stream);
    WaitingStreams::get().capture_begins(stream);
    const std::uint64_t capture = Captures::get().begins(stream);
    join_all_open();  // none stays open from here on
    const CUresult result = call();
    if (result != CUDA_SUCCESS) Captures::get().refused(capture);
    return result;
  });
}

CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode) {
  if (!driver().cuStreamBeginCapture_v2) return CUDA_ERROR_NOT_INITIALIZED;
  return begin(stream, [&] { return driver().cuStreamBeginCapture_v2(stream, mode); });
}

/// The older function without a capture mode.
CUresult begin_old_capture(const char* name, CUstream stream) {
  const auto real = older<CUresult(CUDAAPI*)(CUstream)>(name);
  return real ? begin(stream, [&] { return real(stream); }) : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult begin_capture_to_graph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode) {
  if (!driver().cuStreamBeginCaptureToGraph) return CUDA_ERROR_NOT_INITIALIZED;
  return begin(stream,
               [&] { return driver().cuStreamBeginCaptureToGraph(stream, graph, dependencies, data, count, mode); });
}

using Recapture = CUresult(CUDAAPI*)(CUstream, CUstreamCaptureMode, CUgraph, CUgraphRecaptureCallback, void*);

CUresult begin_recapture(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, CUgraphRecaptureCallback callback,
                         void* data) {
  const auto real = reinterpret_cast<Recapture>(libcuda_function("cuStreamBeginRecaptureToGraph"));
  return real ? begin(stream, [&] { return real(stream, mode, graph, callback, data); }) : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult end_capture(CUstream stream, CUgraph* graph) {
  if (!driver().cuStreamEndCapture) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = driver().cuStreamEndCapture(stream, graph);
  Captures::get().ended(stream);
  return result;
}

CUresult destroy(CUstream stream, CUresult(CUDAAPI* function)(CUstream)) {
  return nothrow([&] {
    if (!function) return CUDA_ERROR_NOT_INITIALIZED;
    join_before(stream);
    for (Context* context : Contexts::all()) context->stream_destroyed(stream);
    StreamPriorities::get().destroyed(stream);
    WaitingStreams::get().destroyed(stream);
    Captures::get().destroyed(stream);
    burst_stream_destroyed(stream);
    return function(stream);
  });
}

CUresult wait_event(CUstream stream, CUevent event, unsigned flags) {
  const auto wait = driver().cuStreamWaitEvent;
  if (!wait) return CUDA_ERROR_NOT_INITIALIZED;
  if (!g_launch_words.lanes_used.load(std::memory_order_relaxed)) return wait(stream, event, flags);
  return nothrow(
      [&] { return follow(stream, [&](CUstream other) { return wait(other ? other : stream, event, flags); }); });
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuStreamDestroy_v2(CUstream stream) {
  return destroy(stream, driver().cuStreamDestroy_v2);
}
#undef cuStreamDestroy
GPUSLICE_HOOK cuStreamDestroy(CUstream stream) {
  return destroy(stream, older<decltype(&cuStreamDestroy_v2)>("cuStreamDestroy"));
}

GPUSLICE_HOOK cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return wait_event(explicit_stream(stream, false), event, flags);
}
GPUSLICE_HOOK cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
  return wait_event(explicit_stream(stream, true), event, flags);
}

#undef cuStreamBeginCapture
GPUSLICE_HOOK cuStreamBeginCapture(CUstream stream) {
  return begin_old_capture("cuStreamBeginCapture", explicit_stream(stream, false));
}
GPUSLICE_HOOK cuStreamBeginCapture_ptsz(CUstream stream) {
  return begin_old_capture("cuStreamBeginCapture", explicit_stream(stream, true));
}
GPUSLICE_HOOK cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(explicit_stream(stream, false), mode);
}
GPUSLICE_HOOK cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begin_capture(explicit_stream(stream, true), mode);
}
GPUSLICE_HOOK cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode) {
  return begin_capture_to_graph(explicit_stream(stream, false), graph, dependencies, data, count, mode);
}
GPUSLICE_HOOK cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                               const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode) {
  return begin_capture_to_graph(explicit_stream(stream, true), graph, dependencies, data, count, mode);
}
GPUSLICE_HOOK cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                            CUgraphRecaptureCallback callback, void* data) {
  return begin_recapture(explicit_stream(stream, false), mode, graph, callback, data);
}
GPUSLICE_HOOK cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                                 CUgraphRecaptureCallback callback, void* data) {
  return begin_recapture(explicit_stream(stream, true), mode, graph, callback, data);
}
GPUSLICE_HOOK cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return end_capture(explicit_stream(stream, false), graph);
}
GPUSLICE_HOOK cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return end_capture(explicit_stream(stream, true), graph);
}

// cuStream*Capture*, cuThreadExchangeStreamCaptureMode.
#include <cuda.h>

#include <algorithm>

#include "softgpu/api/older.h"
#include "softgpu/graph_api/graph.h"

using namespace gpuctl::softgpu;

namespace {

struct CaptureInfo {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  std::shared_ptr<Capture> capture;
  const std::vector<CUgraphNode>* last = nullptr;
};

CUresult capture_info(CUstream handle, CaptureInfo* info, const char* call = __builtin_FUNCTION()) {
  return with_stream(
      handle,
      [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
        if (const CUresult refused = driver.captures.check_legacy(*stream); refused != CUDA_SUCCESS) return refused;
        const std::lock_guard lock(driver.graph_mutex);
        info->capture = driver.captures.find(*stream);
        if (info->capture == nullptr) return CUDA_SUCCESS;
        info->last = &info->capture->streams.at(stream.get()).last;
        info->status =
            info->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        return CUDA_SUCCESS;
      },
      call);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    return driver.captures.begin(stream, mode, nullptr, {});
  });
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle, const CUgraphNode* dependencies,
                                             const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    const std::shared_ptr<Graph> graph = driver.graphs.find(graph_handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!ordinary_edges(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
    {
      const std::lock_guard lock(driver.graph_mutex);
      std::vector<Node*> nodes;
      if (!find_nodes(driver, *graph, dependencies, count, &nodes)) return CUDA_ERROR_INVALID_VALUE;
    }
    return driver.captures.begin(stream, mode, graph, {dependencies, dependencies + count});
  });
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.captures.end(stream, graph);
  });
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CaptureInfo info;
  const CUresult result = capture_info(handle, &info);
  if (result == CUDA_SUCCESS) *status = info.status;
  return result;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** dependencies,
                                           const CUgraphEdgeData** edges, size_t* count) {
  if (status == nullptr || (edges != nullptr && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  CaptureInfo info;
  const CUresult result = capture_info(handle, &info);
  if (result != CUDA_SUCCESS) return result;
  *status = info.status;
  if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id != nullptr) *id = info.capture->id;
  if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(info.capture->graph.get());
  if (dependencies != nullptr) *dependencies = info.last->data();
  if (count != nullptr) *count = info.last->size();
  if (edges != nullptr) {
    thread_local std::vector<CUgraphEdgeData> all_default;
    all_default.assign(info.last->size(), CUgraphEdgeData{});
    *edges = all_default.data();
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(handle, status, id, graph, dependencies, nullptr, count);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(handle, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* dependencies,
                                                      const CUgraphEdgeData* data, size_t count, unsigned int flags) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    const std::lock_guard lock(driver.graph_mutex);
    const std::shared_ptr<Capture> capture = driver.captures.find(*stream);
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    if (!ordinary_edges(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
    std::vector<Node*> nodes;
    if (!find_nodes(driver, *capture->graph, dependencies, count, &nodes)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUgraphNode>& last = capture->streams.at(stream.get()).last;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) last.clear();
    for (const Node* node : nodes) {
      if (std::find(last.begin(), last.end(), handle_of(*node)) == last.end()) last.push_back(handle_of(*node));
    }
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                                   unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return with_driver([&](Driver&) {
    if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    *mode = Captures::exchange_mode(*mode);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

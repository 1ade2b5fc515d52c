#include "softgpu/graph/capture.h"

#include <algorithm>
#include <set>

#include "softgpu/contexts/event.h"
#include "softgpu/contexts/submit.h"
#include "softgpu/graph/graphs.h"

namespace gpuctl::softgpu {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void add_missing(std::vector<CUgraphNode>& nodes, const std::vector<CUgraphNode>& more) {
  for (CUgraphNode node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

std::vector<Node*> known_nodes(const Graphs& graphs, const std::vector<CUgraphNode>& handles) {
  std::vector<Node*> result;
  for (CUgraphNode handle : handles) {
    if (const std::shared_ptr<Node> node = graphs.nodes.find(handle)) result.push_back(node.get());
  }
  return result;
}

/// True if every stream's last nodes are before, or among, those of the origin.
bool all_joined(const Graphs& graphs, const Capture& capture) {
  std::vector<Node*> reached = known_nodes(graphs, capture.streams.at(capture.origin).last);
  std::set<Node*> seen(reached.begin(), reached.end());
  for (std::size_t next = 0; next < reached.size(); ++next) {
    for (Node* dependency : reached[next]->dependencies) {
      if (seen.insert(dependency).second) reached.push_back(dependency);
    }
  }
  for (const auto& [stream, member] : capture.streams) {
    for (Node* node : known_nodes(graphs, member.last)) {
      if (seen.count(node) == 0) return false;
    }
  }
  return true;
}

bool takes_part(const Capture& capture, const Context& context) {
  return std::any_of(capture.streams.begin(), capture.streams.end(),
                     [&](const auto& one) { return one.first->context() == &context; });
}

}  // namespace

CUstreamCaptureMode Captures::exchange_mode(CUstreamCaptureMode mode) {
  return std::exchange(thread_mode, mode);
}

std::shared_ptr<Capture> Captures::find(const Stream& stream) const {
  for (const auto& capture : captures_) {
    if (capture->streams.count(&stream) != 0) return capture;
  }
  return nullptr;
}

CUresult Captures::begin(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> into,
                         std::vector<CUgraphNode> after) {
  const std::lock_guard lock(graphs_.graph_mutex);
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->kind() == Stream::Kind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (find(*stream) != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = next_id_++;
  capture->into_graph_of_program = into != nullptr;
  capture->graph = into != nullptr ? std::move(into) : std::make_shared<Graph>();
  if (!capture->into_graph_of_program) graphs_.add_graph(capture->graph);
  capture->origin = stream.get();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams[stream.get()] = {stream, std::move(after)};
  captures_.push_back(std::move(capture));
  ++count_;
  return CUDA_SUCCESS;
}

void Captures::finish(Capture& capture) {
  capture.ended = true;
  capture.graph = nullptr;  // events may know the capture for long
  std::erase_if(captures_, [&](const auto& one) { return one.get() == &capture; });
  --count_;
}

void Captures::drop(const std::shared_ptr<Capture>& capture) {
  if (!capture->into_graph_of_program) graphs_.destroy_graph(capture->graph);
  finish(*capture);
}

CUresult Captures::end(const std::shared_ptr<Stream>& stream, CUgraph* graph) {
  const std::lock_guard lock(graphs_.graph_mutex);
  const std::shared_ptr<Capture> capture = find(*stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream.get()) {
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture->invalidated) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!all_joined(graphs_, *capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  *graph = result == CUDA_SUCCESS ? reinterpret_cast<CUgraph>(capture->graph.get()) : nullptr;
  if (result == CUDA_SUCCESS) {
    finish(*capture);
  } else {
    drop(capture);
  }
  return result;
}

CUresult Captures::refuse_legacy(const Stream& stream, bool invalidate) {
  if (stream.kind() != Stream::Kind::kLegacy) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : captures_) {
    const bool conflict = std::any_of(capture->streams.begin(), capture->streams.end(), [&](const auto& one) {
      return one.first->context() == stream.context() && one.first->kind() == Stream::Kind::kBlocking;
    });
    if (!conflict) continue;
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (invalidate) capture->invalidated = true;
  }
  return result;
}

CUresult Captures::check_legacy(const Stream& stream) {
  if (none()) return CUDA_SUCCESS;
  const std::lock_guard lock(graphs_.graph_mutex);
  return refuse_legacy(stream, false);
}

CUresult Captures::check_work(const Stream& stream, bool* capturing) {
  *capturing = false;
  if (none()) return CUDA_SUCCESS;
  const std::lock_guard lock(graphs_.graph_mutex);
  if (const CUresult refused = refuse_legacy(stream, true); refused != CUDA_SUCCESS) return refused;
  const std::shared_ptr<Capture> capture = find(stream);
  *capturing = capture != nullptr;
  return *capturing && capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult Captures::check_wait(const Stream& stream) {
  if (none()) return CUDA_SUCCESS;
  const std::lock_guard lock(graphs_.graph_mutex);
  if (const CUresult refused = refuse_legacy(stream, true); refused != CUDA_SUCCESS) return refused;
  const std::shared_ptr<Capture> capture = find(stream);
  if (capture == nullptr) return CUDA_SUCCESS;
  const bool before = std::exchange(capture->invalidated, true);
  return before ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult Captures::check_wait_all(const Context& context) {
  if (none()) return CUDA_SUCCESS;
  const std::lock_guard lock(graphs_.graph_mutex);
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : captures_) {
    if (!takes_part(*capture, context)) continue;
    capture->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult Captures::check_unsafe() {
  if (none() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const std::lock_guard lock(graphs_.graph_mutex);
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : captures_) {
    const bool own = capture->thread == std::this_thread::get_id() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool other = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !other) continue;
    capture->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult Captures::add(const Stream& stream, Work work) {
  const std::lock_guard lock(graphs_.graph_mutex);
  const std::shared_ptr<Capture> capture = find(stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;  // ended by another thread just now
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<CUgraphNode>& last = capture->streams.at(&stream).last;
  const std::shared_ptr<Node> node = capture->graph->add(stream.context(), std::move(work), known_nodes(graphs_, last));
  last = {graphs_.add_node(node)};
  return CUDA_SUCCESS;
}

CUresult Captures::record(const Stream& stream, Event& event) {
  const std::lock_guard lock(graphs_.graph_mutex);
  const std::shared_ptr<Capture> capture = find(stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto record = std::make_shared<CapturedRecord>();
  record->capture = capture;
  record->nodes = capture->streams.at(&stream).last;
  event.set_captured(std::move(record));
  return CUDA_SUCCESS;
}

CUresult Captures::wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, bool external,
                        bool* done) {
  *done = !none() || event->captured() != nullptr;
  if (!*done) return CUDA_SUCCESS;
  std::unique_lock lock(graphs_.graph_mutex);
  const std::shared_ptr<Capture> capture = find(*stream);
  const std::shared_ptr<CapturedRecord> captured = event->captured();
  if (capture != nullptr && capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture != nullptr && external) {
    lock.unlock();
    return add(*stream, WaitWork{event});
  }
  if (captured == nullptr) {
    if (capture == nullptr) {
      *done = false;
      return refuse_legacy(*stream, true);
    }
    if (event->recording() == nullptr) return CUDA_SUCCESS;
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (captured->capture->ended) {
    if (capture != nullptr) capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (captured->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture != nullptr && capture != captured->capture) {
    capture->invalidated = true;
    captured->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (stream->kind() == Stream::Kind::kLegacy) {
    captured->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  Capture::Member& member = captured->capture->streams[stream.get()];
  member.stream = stream;
  add_missing(member.last, captured->nodes);
  return CUDA_SUCCESS;
}

CUresult Captures::check_event(const Event& event) {
  if (event.captured() == nullptr) return CUDA_SUCCESS;
  const std::lock_guard lock(graphs_.graph_mutex);
  const std::shared_ptr<CapturedRecord> captured = event.captured();
  if (captured != nullptr && !captured->capture->ended) captured->capture->invalidated = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

void Captures::forget(const Stream& stream) {
  if (none()) return;
  const std::lock_guard lock(graphs_.graph_mutex);
  const std::shared_ptr<Capture> capture = find(stream);
  if (capture == nullptr) return;
  if (capture->origin == &stream) {
    drop(capture);
  } else {
    capture->streams.erase(&stream);
    capture->invalidated = true;
  }
}

void Captures::forget(const Context& context) {
  const std::lock_guard lock(graphs_.graph_mutex);
  const std::vector<std::shared_ptr<Capture>> all = captures_;
  for (const auto& capture : all) {
    if (takes_part(*capture, context)) drop(capture);
  }
}

CUresult perform(Graphs& graphs, const std::shared_ptr<Stream>& stream, Work work) {
  bool capturing = false;
  if (const CUresult refused = graphs.captures.check_work(*stream, &capturing); refused != CUDA_SUCCESS) return refused;
  if (capturing) return graphs.captures.add(*stream, std::move(work));
  Context* context = stream->context();
  const int priority = stream->priority();
  const bool waits = std::holds_alternative<HostWork>(work) || std::holds_alternative<BatchWork>(work);
  return submit(
      stream,
      [&graphs, context, priority, work = std::make_shared<const Work>(std::move(work))] {
        run_work(graphs, *context, *work, priority, true);
      },
      waits);
}

}  // namespace gpuctl::softgpu

// Stream capture: work given to a capturing stream becomes nodes of a graph.
//
// A capture has one origin stream. Other streams join it when they wait for an event recorded in it. For each of its
// streams the capture knows the nodes on which the next node will depend. A call that is not allowed during a capture
// invalidates it; the stream then returns errors until the capture is ended in its origin stream.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "softgpu/graph/graph.h"

namespace gpuctl::softgpu {

class Graphs;

struct Capture {
  std::uint64_t id = 0;
  std::shared_ptr<Graph> graph;
  bool into_graph_of_program = false;  ///< cuStreamBeginCaptureToGraph
  const Stream* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool invalidated = false;
  bool ended = false;
  struct Member {
    std::shared_ptr<Stream> stream;
    std::vector<CUgraphNode> last;  ///< its next node depends on these; cuStreamGetCaptureInfo shows them
  };
  std::map<const Stream*, Member> streams;
};

/// An event recorded in a capture stands for these nodes.
struct CapturedRecord {
  std::shared_ptr<Capture> capture;
  std::vector<CUgraphNode> nodes;
};

class Captures {
 public:
  explicit Captures(Graphs& graphs) : graphs_(graphs) {}

  CUresult begin(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> into,
                 std::vector<CUgraphNode> after);
  /// `graph` receives the graph, registered with the driver, or nullptr if the capture was not valid.
  CUresult end(const std::shared_ptr<Stream>& stream, CUgraph* graph);

  /// The capture that a stream is part of, or nullptr. The caller holds Graphs::graph_mutex.
  std::shared_ptr<Capture> find(const Stream& stream) const;

  /// Called before a query about a stream: the legacy stream cannot answer while a blocking stream of its context
  /// captures.
  CUresult check_legacy(const Stream& stream);

  /// Called before work is given to `stream`. *capturing says whether the work must become a node (add()). Fails, and
  /// invalidates captures, if the work would break one.
  CUresult check_work(const Stream& stream, bool* capturing);

  /// Called before the host waits for, or queries, the work of `stream`.
  CUresult check_wait(const Stream& stream);

  /// Called before the host waits for all work of a context.
  CUresult check_wait_all(const Context& context);

  /// Called before a call that a capture would not record although the program may expect it to (cuMemAlloc,
  /// cuEventQuery).
  CUresult check_unsafe();

  /// Appends a node to a capturing stream; *node may be nullptr.
  CUresult add(const Stream& stream, Work work);

  /// cuEventRecord in a capturing stream.
  CUresult record(const Stream& stream, Event& event);

  /// cuStreamWaitEvent, if the stream or the event is part of a capture; *done is false if neither is.
  CUresult wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, bool external, bool* done);

  /// Called before the host queries an event.
  CUresult check_event(const Event& event);

  /// Forgets a stream that is being destroyed. A capture that began in it ends.
  void forget(const Stream& stream);

  /// Ends all captures in which streams of a context take part, because the context is being destroyed.
  void forget(const Context& context);

  static CUstreamCaptureMode exchange_mode(CUstreamCaptureMode mode);

 private:
  bool none() const { return count_.load(std::memory_order_acquire) == 0; }
  CUresult refuse_legacy(const Stream& stream, bool invalidate);
  void finish(Capture& capture);
  void drop(const std::shared_ptr<Capture>& capture);

  Graphs& graphs_;
  std::atomic<std::size_t> count_{0};  ///< captures under way; changes under the mutex of graphs
  std::vector<std::shared_ptr<Capture>> captures_;
  std::uint64_t next_id_ = 1;
};

/// Gives work to a stream. It runs in order, or becomes a node if the stream captures.
CUresult perform(Graphs& graphs, const std::shared_ptr<Stream>& stream, Work work);

}  // namespace gpuctl::softgpu

#include "libgpuslice/graphs/confined_graph.h"

#include <utility>

#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/graphs/graph_copy.h"

namespace gpuslice {

namespace {

constexpr char kNoClone[] = "it is part of a graph that the driver does not clone";
constexpr char kNoEvent[] = "the driver made no event";
constexpr char kNotIdle[] = "something may wait for the program, so no copy of its graph can be made now";

}  // namespace

CUgraphExec ConfinedGraph::choose(Context& context, CUstream stream, const Opaque::Launch& launch) {
  none_ = nullptr;
  const std::optional<GrantView::Part> part = context.opaque().part_of_graphs(stream, launch);
  if (!part) return nullptr;
  if (refused_ || !clone_) {
    none_ = refused_ ? refused_ : kNoClone;
    return nullptr;
  }
  if (!copy_ || part_ != *part) {
    const bool used = context.opaque().use_part(
        stream, *part, launch.least, [&](const GreenContexts::Confined& there, const GreenContexts::Hold& hold) {
          if (make(context, *part, there)) hold_ = hold;
        });
    if (!used && !none_) none_ = kNotIdle;
    if (!copy_ || part_ != *part) return nullptr;
  }
  change_over(stream, true);
  return copy_;
}

/// Nothing of the context is on the GPU.
bool ConfinedGraph::make(Context& context, const GrantView::Part& part, const GreenContexts::Confined& there) {
  if (!there.stream) {
    none_ = there.none;
    return false;
  }
  if (!latest_ && driver().cuEventCreate(&latest_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    latest_ = nullptr;
    none_ = kNoEvent;
    return false;
  }
  const GraphCopy copy = copy_in_part(clone_, flags_, there.stream);
  debug("copy of a graph on %u SMs: %s", there.sms, copy.exec ? "made" : copy.none);
  if (!copy.exec) {
    none_ = copy.none;
    if (there.pairs)
      context.opaque().refused_in_pairs();
    else
      refused_ = copy.none;
    return false;
  }
  if (copy_) driver().cuGraphExecDestroy(copy_);
  copy_ = copy.exec;
  part_ = part;
  sms_ = there.sms;
  return true;
}

/// Launches of one executable graph follow each other, so those of the two do.
void ConfinedGraph::change_over(CUstream stream, bool to_copy) {
  if (std::exchange(in_copy_, to_copy) != to_copy) driver().cuStreamWaitEvent(stream, latest_, 0);
}

void ConfinedGraph::leave(CUstream stream) {
  change_over(stream, false);
}

void ConfinedGraph::launched(CUstream stream) {
  if (copy_) driver().cuEventRecord(latest_, stream);
}

void ConfinedGraph::refuse(const char* why) {
  refused_ = why;
}

void ConfinedGraph::give_up() {
  if (copy_) driver().cuGraphExecDestroy(std::exchange(copy_, nullptr));
  if (latest_) driver().cuEventDestroy_v2(std::exchange(latest_, nullptr));
  if (clone_) driver().cuGraphDestroy(std::exchange(clone_, nullptr));
  in_copy_ = false;
  hold_.reset();
}

}  // namespace gpuslice

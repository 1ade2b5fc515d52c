// Launches of graphs. Each kernel that is to run in persistent form gets a launch block and workers for this launch of
// the graph, as if it were launched by itself. It is written into the executable graph with them. The driver promises
// that launches of the graph that are already under way keep the kernels they have.
//
// The book lists the kernels one after the other. If the graph has branches, several of them may run at the same time,
// and the agent looks at all of those (Stream::visit_heads).
#include <algorithm>
#include <optional>

#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/launch/context.h"
#include "libgpuslice/launch/issue.h"
#include "libgpuslice/streams/own_streams.h"

namespace gpuslice {

namespace {

/// Null: the kernel cannot run in persistent form with this shape.
std::unique_ptr<Launch> prepare(const GraphCandidate& candidate, const GrantView& view) {
  const LaunchConfig& config = *candidate.config;
  Instance& instance = *candidate.instance;
  const Fit fit = fit_of(instance, config);
  if (fit.per_sm <= 0) return nullptr;
  auto launch = std::make_unique<Launch>();
  launch->instance = &instance;
  launch->function = fit.function;
  launch->config = config;
  launch->params = *candidate.params;
  launch->per_sm = static_cast<std::uint32_t>(fit.per_sm);
  launch->graph.counts = false;
  launch->input_bytes = input_bytes(view, launch->params);
  return launch;
}

}  // namespace

CUresult Context::launch_graph(CUstream handle, const std::vector<GraphCandidate>& candidates, Opaque::Launch original,
                               bool branches, const Arm& arm, const std::function<CUresult()>& launch_it) {
  struct Booked {
    std::size_t candidate;
    std::unique_ptr<Launch> owned;
    Launch* launch;
  };
  std::vector<Booked> booked;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    std::unique_ptr<Launch> launch = prepare(candidates[i], view());
    if (!launch) continue;
    Launch* raw = launch.get();
    booked.push_back({i, std::move(launch), raw});
  }
  const bool workers_get_on = may_use_own_streams(kQueuesForWorkers);
  Stream* stream = nullptr;
  {
    std::unique_lock lock(state_.book.mutex());
    std::erase_if(booked, [&](const Booked& b) {
      return short_enough(*b.launch->instance, b.launch->config.block_tasks(), b.launch->per_sm);
    });
    if (!booked.empty()) stream = &state_.book.stream_of(handle);
    if (stream && why_crowded(*stream, workers_get_on)) booked.clear(), stream = nullptr;
  }
  for (std::size_t i = 0, next = 0; i < candidates.size(); ++i) {
    if (next < booked.size() && booked[next].candidate == i)
      ++next;
    else
      original.blocks = std::max(original.blocks, candidates[i].config->block_tasks());
  }
  std::optional<Opaque::Turn> turn;
  const auto take_turn = [&] {
    if (!turn && original.blocks > 0 && !capturing_anything()) turn.emplace(opaque(), handle, original);
  };
  take_turn();
  std::unique_lock<std::mutex> issue;
  if (stream) {
    booked.back().launch->graph.counts = true;
    issue = std::unique_lock(stream->issue);
    std::unique_lock lock(state_.book.mutex());
    std::optional<std::vector<std::uint32_t>> slots;
    wait_for_launches(lock, stream,
                      [&] { return (slots = state_.book.take_slots(*stream, booked.size())).has_value(); });
    if (!slots) booked.clear();  // all kernels keep their original form or get it back
    const std::uint64_t number = slots ? state_.book.next_graph() : 0;
    for (std::size_t i = 0; i < booked.size(); ++i) {
      booked[i].launch->graph.number = number;
      booked[i].launch->graph.beside = branches;
      add_to_book(*stream, std::move(booked[i].owned), (*slots)[i]);
    }
  }
  if (!booked.empty()) {
    state_.agent.rouse();
  } else if (stream) {
    issue.unlock();  // a turn comes before it in the order of locks
    for (const GraphCandidate& candidate : candidates)
      original.blocks = std::max(original.blocks, candidate.config->block_tasks());
    take_turn();
  }

  // Nothing may throw from here on: the books hold launches that are kept until `issued` is set.
  CUresult result = CUDA_SUCCESS;
  std::size_t next = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Launch* launch = next < booked.size() && booked[next].candidate == i ? booked[next++].launch : nullptr;
    if (result != CUDA_SUCCESS) {
      if (launch) launch->failed = true;
      continue;
    }
    if (launch && arm(i, launch) == CUDA_SUCCESS) continue;
    if (launch) launch->failed = true;
    result = arm(i, nullptr);
  }
  if (result == CUDA_SUCCESS) result = launch_it();
  if (result != CUDA_SUCCESS) debug("launch of a graph refused: %d", result);
  for (const Booked& b : booked) {
    if (result != CUDA_SUCCESS) b.launch->failed = true;
    b.launch->issued.store(true, std::memory_order_release);
  }
  return result;
}

}  // namespace gpuslice

#include "softgpu/graph/exec.h"

#include <algorithm>
#include <condition_variable>
#include <deque>

#include "softgpu/contexts/event.h"
#include "softgpu/contexts/submit.h"
#include "softgpu/graph/graphs.h"

namespace gpuctl::softgpu {
namespace {

/// The most threads that help to run the nodes of one launch; further branches take turns.
constexpr std::size_t kMostHelpers = 31;

class PlanMaker {
 public:
  PlanMaker(Plan* plan, std::map<const Node*, std::size_t>* step_of) : plan_(*plan), step_of_(*step_of) {}

  /// Appends the steps of a graph, each after those it waits for.
  void add(const Graph& graph) {
    for (const Node* node : graph.in_order()) {
      const auto* child = std::get_if<ChildWork>(&node->work);
      first_[node] = last_[node] = add_step(*node);
      if (child != nullptr) add_child(*node, *child->graph);
      for (const Node* dependency : node->dependencies) add_edge(last_[dependency], first_[node]);
    }
  }

 private:
  std::size_t add_step(const Node& node) {
    Plan::Step step;
    step.context = node.context;
    step.work = std::holds_alternative<ChildWork>(node.work) ? std::make_shared<const Work>(EmptyWork{})
                                                             : std::make_shared<const Work>(node.work);
    plan_.steps.push_back(std::move(step));
    step_of_[&node] = plan_.steps.size() - 1;
    return plan_.steps.size() - 1;
  }

  void add_child(const Node& node, const Graph& graph) {
    const std::size_t entry = first_[&node];
    add(graph);
    const std::size_t exit = add_step(node);
    last_[&node] = exit;
    add_edge(entry, exit);
    for (const auto& inner : graph.nodes()) {
      if (inner->dependencies.empty()) add_edge(entry, first_[inner.get()]);
      if (inner->dependents.empty()) add_edge(last_[inner.get()], exit);
    }
  }

  void add_edge(std::size_t from, std::size_t to) {
    plan_.steps[from].followers.push_back(to);
    ++plan_.steps[to].waits_for;
  }

  Plan& plan_;
  std::map<const Node*, std::size_t>& step_of_;
  std::map<const Node*, std::size_t> first_;
  std::map<const Node*, std::size_t> last_;
};

}  // namespace

std::size_t width_of(const Plan& plan) {
  // Counts chains that cover the plan: each step is followed by the first of its followers that no other chain has
  // taken.
  std::vector<bool> continues(plan.steps.size());
  for (const Plan::Step& step : plan.steps) {
    const auto next =
        std::find_if(step.followers.begin(), step.followers.end(), [&](std::size_t to) { return !continues[to]; });
    if (next != step.followers.end()) continues[*next] = true;
  }
  return static_cast<std::size_t>(std::count(continues.begin(), continues.end(), false));
}

/// One launch. Its members after `events` are guarded by `mutex`.
struct GraphExec::Run {
  Graphs& graphs;
  Context& context;  ///< for nodes that have none
  std::shared_ptr<const Plan> plan;
  int priority = 0;
  bool own_priority = false;
  std::vector<std::shared_ptr<Recording>> events;  ///< for each step that waits for, or records, an event

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::size_t> waits_for;
  std::deque<std::size_t> ready;
  std::size_t unclaimed = 0;
  std::size_t left = 0;

  Run(Graphs& of, Context& of_stream, std::shared_ptr<const Plan> steps)
      : graphs(of), context(of_stream), plan(std::move(steps)) {
    for (std::size_t i = 0; i < plan->steps.size(); ++i) {
      waits_for.push_back(plan->steps[i].waits_for);
      if (waits_for.back() == 0) ready.push_back(i);
    }
    events.resize(plan->steps.size());
    unclaimed = left = plan->steps.size();
  }

  /// Runs steps as they become ready, until all have ended, or until all have been taken by a thread.
  void work(bool to_the_end) {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return !ready.empty() || (to_the_end ? left : unclaimed) == 0; });
      if (ready.empty()) return;
      const std::size_t step = ready.front();
      ready.pop_front();
      if (--unclaimed == 0) changed.notify_all();
      lock.unlock();
      run_step(step);
      lock.lock();
      --left;
      for (const std::size_t follower : plan->steps[step].followers) {
        if (--waits_for[follower] == 0) ready.push_back(follower);
      }
      if (left == 0 || ready.size() > 1) changed.notify_all();
    }
  }

  void run_step(std::size_t number) {
    const Plan::Step& step = plan->steps[number];
    const std::shared_ptr<Recording>& event = events[number];
    if (std::holds_alternative<RecordWork>(*step.work)) {
      event->pass();
    } else if (std::holds_alternative<WaitWork>(*step.work)) {
      const Context& where = step.context != nullptr ? *step.context : context;
      if (event != nullptr) event->wait_unless(where.stopped());
    } else if (step.enabled) {
      run_work(graphs, step.context != nullptr ? *step.context : context, *step.work, priority, own_priority);
    }
  }
};

GraphExec::GraphExec(Graphs& graphs, Context& context, std::shared_ptr<Graph> source, unsigned long long flags)
    : graphs_(graphs), context_(context), source_(std::move(source)), flags_(flags), plan_(std::make_shared<Plan>()) {
  PlanMaker(plan_.get(), &step_of_).add(*source_);
  index(*source_);
  const std::size_t width = std::max<std::size_t>(width_of(*plan_), 1);
  for (std::size_t i = 1; i < std::min(width, kMostHelpers + 1); ++i) {
    helpers_.push_back(context_.create_stream(Stream::Kind::kNonBlocking, kLeastPriority));
  }
}

GraphExec::~GraphExec() {
  for (const auto& helper : helpers_) context_.remove_stream(helper);
}

void GraphExec::index(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    by_origin_[node->origin] = node.get();
    if (const auto* child = std::get_if<ChildWork>(&node->work)) index(*child->graph);
  }
}

Node* GraphExec::find(std::uint64_t id) const {
  const auto found = by_origin_.find(id);
  return found == by_origin_.end() ? nullptr : found->second;
}

Plan& GraphExec::changeable_plan() {
  if (std::exchange(launched_, false)) plan_ = std::make_shared<Plan>(*plan_);
  return *plan_;
}

void GraphExec::set_work(Node& node, Work work) {
  node.work = std::move(work);
  changeable_plan().steps[step_of_.at(&node)].work = std::make_shared<const Work>(node.work);
}

bool GraphExec::enabled(const Node& node) const {
  return plan_->steps[step_of_.at(&node)].enabled;
}

void GraphExec::set_enabled(const Node& node, bool enabled) {
  changeable_plan().steps[step_of_.at(&node)].enabled = enabled;
}

/// The memory that this launch allocates must be free, unless it is to be freed on launch.
CUresult GraphExec::take_memory() {
  std::vector<std::shared_ptr<GraphMemory>> freed;
  const bool may_be_live = (flags_ & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (const Plan::Step& step : plan_->steps) {
    const auto* alloc = std::get_if<AllocWork>(step.work.get());
    if (alloc != nullptr && !may_be_live && graphs_.graph_memories.live(*alloc->memory))
      return CUDA_ERROR_INVALID_VALUE;
  }
  for (const Plan::Step& step : plan_->steps) {
    if (const auto* alloc = std::get_if<AllocWork>(step.work.get())) {
      graphs_.graph_memories.set_live(alloc->memory, true);
    } else if (const auto* released = std::get_if<FreeWork>(step.work.get())) {
      freed.push_back(released->memory);
    }
  }
  for (const auto& memory : freed) graphs_.graph_memories.set_live(memory, false);
  return CUDA_SUCCESS;
}

CUresult GraphExec::launch(const std::shared_ptr<Stream>& stream) {
  if (const CUresult taken = take_memory(); taken != CUDA_SUCCESS) return taken;
  const auto run = std::make_shared<Run>(graphs_, *stream->context(), plan_);
  run->priority = stream->priority();
  run->own_priority = (flags_ & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
  // Waits refer to recordings made before this launch, even if it records the same event.
  for (std::size_t i = 0; i < plan_->steps.size(); ++i) {
    const Work& work = *plan_->steps[i].work;
    if (const auto* wait = std::get_if<WaitWork>(&work)) run->events[i] = wait->event->recording();
    if (std::holds_alternative<RecordWork>(work)) run->events[i] = std::make_shared<Recording>();
  }
  const auto done = std::make_shared<Recording>();
  const CUresult submitted = submit(stream, [run, done, previous = last_, helpers = helpers_] {
    if (previous != nullptr) previous->wait();
    for (const auto& helper : helpers) helper->submit([run] { run->work(false); });
    run->work(true);
    done->pass();
  });
  if (submitted != CUDA_SUCCESS) return submitted;
  last_ = done;
  launched_ = true;
  for (std::size_t i = 0; i < plan_->steps.size(); ++i) {
    const auto* record = std::get_if<RecordWork>(plan_->steps[i].work.get());
    if (record != nullptr) record->event->set(run->events[i]);
  }
  return CUDA_SUCCESS;
}

}  // namespace gpuctl::softgpu

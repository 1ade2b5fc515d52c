#include "softgpu/graph/work.h"

#include "softgpu/contexts/context.h"
#include "softgpu/contexts/machine.h"

namespace gpuctl::softgpu {
namespace {

/// In the order of Work.
constexpr CUgraphNodeType kTypes[] = {
    CU_GRAPH_NODE_TYPE_KERNEL,     CU_GRAPH_NODE_TYPE_MEMCPY,       CU_GRAPH_NODE_TYPE_MEMSET,
    CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
    CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    CU_GRAPH_NODE_TYPE_MEM_FREE,   CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
static_assert(std::size(kTypes) == std::variant_size_v<Work>);

/// Runs work that reads and writes memory itself. It must not begin once the context is stopped: the memory may be
/// gone.
void run_on_memory(Machine& machine, Context& context, const Work& work) {
  const Activity::Scope scope(machine.activity);
  if (context.stopped().load()) return;
  if (const auto* copy = std::get_if<CopyWork>(&work)) run_copy(machine, *copy);
  if (const auto* set = std::get_if<SetWork>(&work)) run_set(machine, *set);
  if (const auto* batch = std::get_if<BatchWork>(&work)) run_batch(machine, context, *batch);
}

}  // namespace

CUgraphNodeType type_of(const Work& work) {
  return kTypes[work.index()];
}

void run_work(Machine& machine, Context& context, const Work& work, int priority, bool own_priority) {
  if (context.stopped().load()) return;
  if (const auto* kernel = std::get_if<KernelWork>(&work)) {
    const auto own = kernel->attributes.find(CU_LAUNCH_ATTRIBUTE_PRIORITY);
    const int of_its_own = own == kernel->attributes.end() ? 0 : own->second.priority;
    run_kernel(machine, context, *kernel, own_priority ? of_its_own : priority);
  } else if (const auto* host = std::get_if<HostWork>(&work)) {
    host->function(host->data);
  } else {
    run_on_memory(machine, context, work);
  }
}

}  // namespace gpuctl::softgpu

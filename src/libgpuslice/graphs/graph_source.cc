#include "libgpuslice/graphs/graph_source.h"

#include <mutex>
#include <new>
#include <unordered_map>

#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace {

struct SourceRegistry {
  std::mutex mutex;
  std::unordered_map<CUgraph, std::weak_ptr<GraphSource>> sources;
};

/// Never destroyed, since programs destroy graphs in destructors too.
SourceRegistry& source_registry() {
  static auto* all = new SourceRegistry;
  return *all;
}

}  // namespace

std::shared_ptr<GraphSource> GraphSource::of(CUgraph graph) {
  SourceRegistry& all = source_registry();
  std::lock_guard lock(all.mutex);
  std::weak_ptr<GraphSource>& known = all.sources[graph];
  std::shared_ptr<GraphSource> source = known.lock();
  if (!source) known = source = std::make_shared<GraphSource>(graph);
  return source;
}

std::optional<CUresult> GraphSource::destroy(CUgraph graph) {
  SourceRegistry& all = source_registry();
  std::shared_ptr<GraphSource> source;  // released after the mutex, since the last release takes the mutex too
  std::lock_guard lock(all.mutex);
  const auto found = all.sources.find(graph);
  if (found == all.sources.end()) return std::nullopt;
  source = found->second.lock();
  if (!source) return std::nullopt;
  if (source->destroyed_) return CUDA_ERROR_INVALID_VALUE;
  source->destroyed_ = true;
  return CUDA_SUCCESS;
}

GraphSource::~GraphSource() {
  SourceRegistry& all = source_registry();
  {
    std::lock_guard lock(all.mutex);
    const auto found = all.sources.find(graph_);
    if (found != all.sources.end() && found->second.expired()) all.sources.erase(found);
  }
  if (destroyed_) driver().cuGraphDestroy(graph_);
}

void GraphSource::make_registry() {
  static_cast<void>(source_registry());
}

void GraphSource::forget_after_fork() {
  new (&source_registry()) SourceRegistry;
}

}  // namespace gpuslice

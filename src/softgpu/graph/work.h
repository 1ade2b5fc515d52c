// One operation as a value: what a stream runs and what a node of a graph holds. Everything is decided and checked when
// it is made; running it only looks at the context's error.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "softgpu/executor.h"
#include "softgpu/module.h"

namespace gpuctl::softgpu {

class Context;
class Driver;
class Event;
class Graph;
class GraphMemory;
class Recording;
class Stream;

struct KernelWork {
  std::shared_ptr<Function> function;
  CUfunction func = nullptr;  ///< as the program gave it, or nullptr: `kern` was given
  CUkernel kern = nullptr;
  KernelLaunch launch;     ///< its urgency is decided when it runs; its SMs are those of the stream it came through
  bool as_buffer = false;  ///< the program gave its parameters as one buffer (`extra`)
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;
};

struct CopyWork {
  CUDA_MEMCPY3D what{};
  std::shared_ptr<const void> staged;  ///< owns the source if that is a copy of the program's bytes
};

struct SetWork {
  CUDA_MEMSET_NODE_PARAMS what{};
};

struct HostWork {
  CUhostFn function = nullptr;
  void* data = nullptr;
};

struct ChildWork {
  std::shared_ptr<Graph> graph;
};

struct EmptyWork {};

struct WaitWork {
  std::shared_ptr<Event> event;
};

struct RecordWork {
  std::shared_ptr<Event> event;
};

struct AllocWork {
  std::shared_ptr<GraphMemory> memory;
};

struct FreeWork {
  std::shared_ptr<GraphMemory> memory;
};

struct BatchWork {
  std::vector<CUstreamBatchMemOpParams> steps;
};

using Work = std::variant<KernelWork, CopyWork, SetWork, HostWork, ChildWork, EmptyWork, WaitWork, RecordWork,
                          AllocWork, FreeWork, BatchWork>;

CUgraphNodeType type_of(const Work& work);

/// Checks a launch and takes its parameters over. `func` may be a CUkernel in disguise; without it `kern` counts.
CUresult make_kernel(Driver& driver, const CUDA_KERNEL_NODE_PARAMS& params, KernelWork* work);

/// Takes an attribute of a launch or of a node, or says that the software GPU does not do what it asks for.
CUresult set_attribute(KernelWork& work, CUlaunchAttributeID id, const CUlaunchAttributeValue& value);

/// Both ends must be valid memory of the kind they are said to be.
CUresult check_copy(Driver& driver, const CUDA_MEMCPY3D& copy);
CUresult check_set(Driver& driver, const CUDA_MEMSET_NODE_PARAMS& set);
CUresult check_batch(Driver& driver, const std::vector<CUstreamBatchMemOpParams>& steps);

/// A copy of consecutive bytes. kEither ends are what the memory map knows them to be.
CUDA_MEMCPY3D flat_copy(CUmemorytype to_type, std::uint64_t to, CUmemorytype from_type, std::uint64_t from,
                        std::size_t bytes);

/// Where the first byte of each end is.
std::uint64_t copy_source(const CUDA_MEMCPY3D& copy);
std::uint64_t copy_target(const CUDA_MEMCPY3D& copy);

/// Runs kernels, copies, memsets, host functions and memory operations to their end; the rest is for others to do.
/// `priority` is that of the stream, as CUDA numbers them. With `own_priority` a kernel's attribute counts instead, 0
/// if it has none.
void run_work(Driver& driver, Context& context, const Work& work, int priority, bool own_priority);

void run_kernel(Driver& driver, Context& context, const KernelWork& work, int priority);
void run_copy(Driver& driver, const CopyWork& work);
void run_set(Driver& driver, const SetWork& work);
void run_batch(Driver& driver, Context& context, const BatchWork& work);

}  // namespace gpuctl::softgpu

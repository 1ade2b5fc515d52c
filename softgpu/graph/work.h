// One operation as a value, for a stream to run or a graph node to hold. Everything is decided and checked when it is
// made; running it only checks the context's error.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "softgpu/code/module.h"
#include "softgpu/device/executor.h"

namespace gpuctl::softgpu {

class Context;
class Machine;
class Event;
class Graph;
class GraphMemory;
class Recording;
class Stream;

struct KernelWork {
  std::shared_ptr<Function> function;
  CUfunction func = nullptr;  ///< as the program gave it, or nullptr: `kern` was given
  CUkernel kern = nullptr;
  KernelLaunch launch;     ///< its urgency is set when it runs; its SMs are those of its stream
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

/// Checks a launch and copies its parameters. `func` may be a CUkernel cast to CUfunction; if it is null, `kern` is
/// used. The code must belong to the context, or to its device.
CUresult make_kernel(Machine& machine, const Context& context, const CUDA_KERNEL_NODE_PARAMS& params, KernelWork* work);

/// Sets an attribute of a launch or of a node, or says that the software GPU does not support its value.
CUresult set_attribute(KernelWork& work, CUlaunchAttributeID id, const CUlaunchAttributeValue& value);

/// Both ends must be valid memory of the declared kind.
CUresult check_copy(Machine& machine, const CUDA_MEMCPY3D& copy);
CUresult check_set(Machine& machine, const CUDA_MEMSET_NODE_PARAMS& set);
CUresult check_batch(Machine& machine, const std::vector<CUstreamBatchMemOpParams>& steps);

/// A copy of consecutive bytes. The memory map decides what kEither ends are.
CUDA_MEMCPY3D flat_copy(CUmemorytype to_type, std::uint64_t to, CUmemorytype from_type, std::uint64_t from,
                        std::size_t bytes);

/// The address of the first byte of each end.
std::uint64_t copy_source(const CUDA_MEMCPY3D& copy);
std::uint64_t copy_target(const CUDA_MEMCPY3D& copy);

/// Runs kernels, copies, memsets, host functions and memory operations to their end; other work is done elsewhere.
/// `priority` is the stream's, as CUDA numbers it. With `own_priority`, a kernel's attribute is used instead, 0 if it
/// has none.
void run_work(Machine& machine, Context& context, const Work& work, int priority, bool own_priority);

void run_kernel(Machine& machine, Context& context, const KernelWork& work, int priority);
void run_copy(Machine& machine, const CopyWork& work);
void run_set(Machine& machine, const SetWork& work);
void run_batch(Machine& machine, Context& context, const BatchWork& work);

}  // namespace gpuctl::softgpu

// The state of the driver in this process, and the frame every API function runs in.
//
// Made by the first cuInit and never destroyed: its threads may run until the process is gone. A child made by fork
// has none of these threads, so there every call answers CUDA_ERROR_NOT_INITIALIZED.
#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "softgpu/activity.h"
#include "softgpu/config.h"
#include "softgpu/context.h"
#include "softgpu/device_memory.h"
#include "softgpu/doorbell.h"
#include "softgpu/event.h"
#include "softgpu/executor.h"
#include "softgpu/graph/capture.h"
#include "softgpu/graph/exec.h"
#include "softgpu/graph/graph.h"
#include "softgpu/graph/memory.h"
#include "softgpu/linker.h"
#include "softgpu/module.h"
#include "softgpu/registry.h"
#include "softgpu/table.h"
#include "softgpu/virtual_memory.h"

namespace gpuctl::softgpu {

class Driver {
 public:
  /// cuInit: makes the driver unless it is there.
  static CUresult start();

  /// The driver, or nullptr before start(), in a forked child, and once the process exits. Takes no lock.
  static Driver* get();

  /// What that API function answers when there is no driver (see get()). With SOFTGPU_STRICT_EXIT=1 it does not return
  /// if the reason is that the process exits.
  static CUresult refuse(const char* call);

  /// Ends all contexts: kernels are stopped, nothing touches memory any more, waits are over, the SMs are given back.
  /// Called when the process exits, by a handler that the first cuInit has registered.
  static void stop();

  Context* create_context(unsigned flags);

  /// The primary context, made by the first call after a reset. Each call counts.
  Context* retain_primary();
  CUresult release_primary();
  void reset_primary();
  /// nullptr while it is not active.
  Context* active_primary();
  unsigned primary_flags();
  void set_primary_flags(unsigned flags);

  /// Retains the primary context.
  CUgreenCtx make_green_context(std::uint64_t sms);

  /// Ends a context's work and frees its streams, events, modules and memory.
  void destroy_context(Context& context);

  /// Waits until all work submitted so far in any context is over. Stopped contexts do what they have begun, no more.
  void synchronize_all();

  /// Loading code waits as a real driver does: until all work submitted so far is over in the context, or in every one
  /// for a library (null). Called when an image is loaded and when a kernel is used for the first time; either one
  /// waits, as CUDA_MODULE_LOADING says.
  void loads_image(Context* context);
  void uses(Function& function, Context& context);

  /// The stream a handle means in the current context; nullptr if there is none such.
  std::shared_ptr<Stream> stream(Context& current, CUstream handle) const;

  /// The function a CUfunction means, which may also be a CUkernel in disguise.
  std::shared_ptr<Function> function(CUfunction handle) const;

  /// Makes a program's code known (handles, memory) or unknown.
  void add_module(const std::shared_ptr<Module>& module);
  void remove_module(const Module& module);

  /// Makes a node known, with the child graph in it. Needs graph_mutex, as everything about graphs.
  CUgraphNode add_node(const std::shared_ptr<Node>& node);
  void remove_node(const std::shared_ptr<Node>& node);

  /// Makes a graph and its nodes known.
  CUgraph add_graph(const std::shared_ptr<Graph>& graph);

  /// Makes a graph and its nodes unknown; what is instantiated of it goes on.
  void destroy_graph(const std::shared_ptr<Graph>& graph);

  /// Appends a line to the file that SOFTGPU_DEBUG names, if it does.
  void debug(const std::string& line);

  const Config config;
  const std::unique_ptr<Table> table;
  Memory memory;
  VirtualMemory virtual_memory{memory};
  PhysicalHandles physical_handles;
  Activity activity;
  Executor executor;
  Doorbell doorbell;
  Registry<CUcontext, Context> contexts;
  Registry<CUstream, Stream> streams;
  Registry<CUevent, Event> events;
  Registry<CUmodule, Module> modules;
  Registry<CUfunction, Function> functions;
  Registry<CUlibrary, Library> libraries;
  Registry<CUkernel, Kernel> kernels;
  Registry<CUlinkState, Linker> linkers;
  Registry<CUgreenCtx, GreenContext> green_contexts;
  Registry<CUdevResourceDesc, ResourceDescription> resource_descriptions;  ///< nothing destroys one
  std::atomic<std::uint64_t> next_split{1};

  std::mutex graph_mutex;  ///< guards captures, graphs and executable graphs, which programs may not use in parallel
  Captures captures{*this};
  GraphMemories graph_memories{memory};
  Registry<CUgraph, Graph> graphs;
  Registry<CUgraphNode, Node> nodes;
  Registry<CUgraphExec, GraphExec> graph_execs;

 private:
  Driver(Config settings, std::unique_ptr<Table> shared);
  void forget_variables(const Module& module);
  std::vector<std::shared_ptr<Context>> every_context();

  std::mutex mutex_;  ///< guards what follows
  Context* primary_ = nullptr;
  unsigned primary_uses_ = 0;
  unsigned primary_flags_ = 0;
  std::uint64_t next_context_id_ = 1;
  /// All contexts ever: never freed, see Context.
  std::vector<std::shared_ptr<Context>> all_contexts_;
};

/// Runs `body(driver)` for an API function; nothing it throws gets out. `call`, here and below: the name of that
/// function, handed on by helpers between it and these.
template <class Body>
CUresult with_driver(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  Driver* driver = Driver::get();
  if (driver == nullptr) return Driver::refuse(call);
  try {
    return std::forward<Body>(body)(*driver);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// Runs `body(driver, found)` with what has that handle in one of the driver's tables.
template <class Handles, class Handle, class Body>
CUresult with_found(Handles Driver::*table, Handle handle, Body&& body,
                    const char* call = __builtin_FUNCTION()) noexcept {
  return with_driver(
      [&](Driver& driver) {
        const auto found = (driver.*table).find(handle);
        return found == nullptr ? static_cast<CUresult>(CUDA_ERROR_INVALID_HANDLE) : body(driver, *found);
      },
      call);
}

/// Runs `body(driver, context)` with the current context, which must be usable.
template <class Body>
CUresult with_context(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_driver(
      [&](Driver& driver) {
        if (context_stack().empty() || context_stack().back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
        Context& context = *context_stack().back();
        if (context.error() != CUDA_SUCCESS) return context.error();
        return body(driver, context);
      },
      call);
}

/// Runs `body(driver, stream)`; `stream` is of a usable context.
template <class Body>
CUresult with_stream(CUstream handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_context(
      [&](Driver& driver, Context& context) {
        const std::shared_ptr<Stream> stream = driver.stream(context, handle);
        if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
        if (const CUresult error = stream->error(); error != CUDA_SUCCESS) return error;
        return body(driver, stream);
      },
      call);
}

/// Submits an operation and returns what the API function should: an error only if no thread could be had.
inline CUresult submit(const std::shared_ptr<Stream>& stream, std::function<void()> operation) {
  return stream->context()->submit(stream, std::move(operation)) != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/// Submits an operation and waits for it. If the context is stopped before the operation has begun, it never begins.
inline CUresult submit_and_wait(const std::shared_ptr<Stream>& stream, std::function<void()> operation) {
  const auto claimed = std::make_shared<std::atomic<bool>>(false);
  const std::uint64_t number = stream->context()->submit(stream, [claimed, operation = std::move(operation)] {
    if (!claimed->exchange(true)) operation();
  });
  if (number == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!stream->wait_unless_stopped(number) && claimed->exchange(true))
    stream->wait(number);  // it uses the caller's memory
  return stream->context()->error();
}

}  // namespace gpuctl::softgpu

// The state of the driver in this process, and the frame that runs every API function.
//
// The first cuInit makes it. It is never destroyed: its threads may run until the process is gone. A child made by fork
// has none of these threads, so every call there returns CUDA_ERROR_NOT_INITIALIZED.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "softgpu/code/linker.h"
#include "softgpu/code/module.h"
#include "softgpu/contexts/context.h"
#include "softgpu/contexts/event.h"
#include "softgpu/contexts/submit.h"
#include "softgpu/device/exit.h"
#include "softgpu/driver/gate.h"
#include "softgpu/graph/graphs.h"
#include "softgpu/host/registry.h"
#include "softgpu/memory/virtual_memory.h"

namespace gpuctl::softgpu {

/// From which memory is allocated in a stream's order. Nothing is kept in it.
struct MemoryPool {
  Device* device;
};

class Driver : public Graphs {
 public:
  /// cuInit: makes the driver unless it exists.
  static CUresult start();

  /// The driver, or nullptr before start(), in a forked child, and once the process exits. Takes no lock.
  static Driver* get();

  /// The result of that API function if there is no driver (see get()). With SOFTGPU_STRICT_EXIT=1 it does not return
  /// if the process exits.
  static CUresult refuse(const char* call);

  /// Ends all contexts: kernels stop, nothing touches memory any more, waits end, and the SMs are given back. A handler
  /// that the first cuInit has registered calls it when the process exits.
  static void stop();

  Context* create_context(unsigned flags, Device& device);

  /// The primary context of a device; the first call after a reset makes it. Each call counts.
  Context* retain_primary(Device& device);
  CUresult release_primary(const Device& device);
  void reset_primary(const Device& device);
  /// nullptr while it is not active.
  Context* active_primary(const Device& device);
  unsigned primary_flags(const Device& device);
  void set_primary_flags(const Device& device, unsigned flags);

  /// Retains the primary context.
  CUgreenCtx make_green_context(Device& device, const ResourceDescription& part);

  /// Ends a context's work and frees its streams, events, modules and memory.
  void destroy_context(Context& context);

  /// Waits until all work submitted so far in any context, or in any context on that device, is over. Stopped contexts
  /// finish only the work that has begun.
  void synchronize_all(const Device* device = nullptr);
  /// True if all work submitted so far in any context is over.
  bool idle();

  /// Loading code waits as a real driver does: until all work submitted so far is over in the context, or, for a
  /// library (null), in every context. The first is called when an image is loaded, the second when a kernel is used
  /// for the first time. CUDA_MODULE_LOADING decides which of the two waits.
  void loads_image(Context* context);
  void uses(Function& function, Context& context);

  /// The stream of a handle in the current context; nullptr if there is none.
  std::shared_ptr<Stream> stream(Context& current, CUstream handle) const;

  /// Registers a program's code (handles, memory), or removes it.
  void add_module(const std::shared_ptr<Module>& module);
  void remove_module(const Module& module);

  Gate gate;
  std::atomic<bool> memory_away{false};  ///< on the host, by a checkpoint
  VirtualMemory virtual_memory{memory};
  PhysicalHandles physical_handles;
  Registry<CUcontext, Context> contexts;
  Registry<CUstream, Stream> streams;
  Registry<CUevent, Event> events;
  Registry<CUmodule, Module> modules;
  Registry<CUlibrary, Library> libraries;
  Registry<CUlinkState, Linker> linkers;
  Registry<CUgreenCtx, GreenContext> green_contexts;
  Registry<CUdevResourceDesc, ResourceDescription> resource_descriptions;  ///< never destroyed
  std::atomic<std::uint64_t> next_split{1};
  Registry<CUmemoryPool, MemoryPool> pools;
  /// The pool that the device has from the start.
  CUmemoryPool default_pool(Device& device);

 private:
  struct Primary {
    Context* context = nullptr;
    unsigned uses = 0;
    unsigned flags = 0;
  };

  Driver(Config settings, std::vector<SeenDevice> seen);
  Context* make_context(unsigned flags, Device& device);
  Primary& primary_of(const Device& device);
  void forget_variables(const Module& module);
  std::vector<std::shared_ptr<Context>> every_context();

  std::mutex mutex_;                ///< guards what follows
  std::vector<Primary> primaries_;  ///< by device
  std::map<const Device*, CUmemoryPool> default_pools_;
  std::uint64_t next_context_id_ = 1;
  /// All contexts ever: never freed, see Context.
  std::vector<std::shared_ptr<Context>> all_contexts_;
};

/// Whether the function only looks at what the GPU has done. NVIDIA's driver lets such calls into a locked process, and
/// they read marks whose memory is away after the checkpoint (seen with 580.159).
bool looks_at_work(std::string_view call);
/// As such a read ends the process.
void end_by_access();

/// Runs `body(driver)` for an API function; no exception gets out. `call`, here and below: the name of that function,
/// passed on by helpers between it and these.
template <class Body>
CUresult with_driver(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  Driver* driver = Driver::get();
  if (driver == nullptr) return Driver::refuse(call);
  const Gate::Inside inside(driver->gate, [call] { return Driver::get() != nullptr && !looks_at_work(call); });
  if (driver->memory_away && looks_at_work(call)) end_by_access();
  if (Driver::get() == nullptr) return Driver::refuse(call);
  try {
    return std::forward<Body>(body)(*driver);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// Runs `body(driver, device)` with the device of that number.
template <class Body>
CUresult with_device(CUdevice ordinal, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_driver(
      [&](Driver& driver) {
        Device* const device = driver.device(ordinal);
        return device == nullptr ? static_cast<CUresult>(CUDA_ERROR_INVALID_DEVICE) : body(driver, *device);
      },
      call);
}

/// Runs `body(driver, found)` with the object that has that handle in one of the driver's tables.
template <class Handles, class Part, class Handle, class Body>
CUresult with_found(Handles Part::*table, Handle handle, Body&& body,
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
        if (stream == nullptr) {
          complain_of_lost_stream(call);
          return CUDA_ERROR_INVALID_HANDLE;
        }
        if (const CUresult error = stream->error(); error != CUDA_SUCCESS) return error;
        return body(driver, stream);
      },
      call);
}

}  // namespace gpuctl::softgpu

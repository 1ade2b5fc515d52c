// What is known of each kernel the program can launch, found by the handle it launches with.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "ipc/types.h"

namespace gpuslice {

/// Where one parameter lies in the parameter block.
struct Parameter {
  std::uint32_t offset;
  std::uint32_t size;
};

struct KernelInfo;
class Context;

/// Forms of an image's kernels that are not there yet (modules/late_forms.h).
class ComingForms {
 public:
  /// At a launch: loads them if they are compiled and this is the moment. In the context that the image is loaded in.
  virtual void load_if_idle() = 0;
  /// Why its kernels are in their original form, in a phrase; null where each kernel's own reason says it.
  virtual const char* phrase() const = 0;

 protected:
  ~ComingForms() = default;
};

/// A kernel in one context, ready to be launched in persistent form.
struct Instance {
  KernelInfo* kernel = nullptr;
  const Context* context = nullptr;  ///< not its handle, which can mean another one after a reset
  /// Null: this kernel stays in its original form here (KernelInfo::reason). KernelInfo::mutex.
  CUfunction persistent = nullptr;
  int max_threads = 0;
  int most_dynamic_shared = 0;  ///< bytes, beside its static variables

  /// Workers one SM holds, for the block sizes seen; asked of the driver once each. Guarded by KernelInfo::mutex.
  struct Occupancy {
    std::uint32_t threads = 0, shared = 0;
    int per_sm = 0;
  };
  std::array<Occupancy, 4> occupancy{};
  std::uint32_t occupancy_next = 0;

  double task_ns = 0;         ///< one block-task, measured by pollers and smoothed; 0 = not yet. Context's mutex
  std::uint32_t skipped = 0;  ///< launches in original form since the last measured one. Context's mutex
};

/// One kernel of one loaded image.
struct KernelInfo {
  std::string name;
  std::string module;  ///< short label of the image
  /// Has a persistent form, or a guarded one; the functions below are written before it.
  std::atomic<bool> persistent{false};
  bool once = false;  ///< it is guarded: each worker runs one block-task
  /// Its image's, if it may get a persistent form later; as it was when the kernel became known.
  std::shared_ptr<ComingForms> late;
  std::atomic<bool> may_get_form{true};  ///< false once it is known that `late` brings none
  std::string reason;                    ///< why this form; one line
  std::vector<Parameter> params;         ///< of the program, without ours
  std::uint32_t args_offset = 0;         ///< of LaunchArgs in the parameter block of the persistent form
  /// For other blocks than gpuctl::ptx::EntryReport says, it is launched in original form.
  bool needs_whole_warps = false;
  bool words_behind = false;                            ///< gpuctl::ptx::EntryReport::words_behind
  CUkernel persistent_kernel = nullptr;                 ///< image loaded as a library
  CUfunction persistent_function = nullptr;             ///< image loaded as a module, which belongs to one context
  bool blocks_wait = false;                             ///< blocks_may_wait() of its name
  bool is_library_kernel = false;                       ///< the handle it is known by is a CUkernel
  std::atomic<const char*> original_in_graph{nullptr};  ///< why it was last kept in its original form in a graph

  /// How it was last launched so that it had to keep its original form.
  std::atomic<const char*> original_launch{nullptr};

  /// Of its latest launch that could not be evicted: on how many SMs of a green context, or why on any (opaque.h).
  std::atomic<std::uint32_t> confined_sms{0};
  std::atomic<const char*> anywhere{nullptr};
  std::atomic<const char*> unlimited{nullptr};  ///< or why it was not even made to wait

  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> hash{0};   ///< hash_of(), once asked for
  std::atomic<std::uint32_t> timed{0};  ///< launches in original form that were (launch_timer.h)
  std::atomic<int> registers{0}, registers_original{0}, per_sm{0};
  std::atomic<std::uint32_t> task_ns{0};
  std::atomic<bool> changed{true};  ///< since the last report to the daemon

  void count_launch() {
    launches.fetch_add(1, std::memory_order_relaxed);
    changed.store(true, std::memory_order_relaxed);
  }

  std::mutex mutex;  ///< guards what follows, and reason after loading
  std::vector<std::unique_ptr<Instance>> instances;
  std::map<CUfunction_attribute, int> attributes;  ///< set by the program
  std::optional<CUfunc_cache> cache_config;        ///< set by the program
};

/// ipc::kernel_hash: how the daemon knows it.
std::uint64_t hash_of(KernelInfo& kernel);

/// The dynamic shared memory, in bytes, that the persistent form is launched with where the program asks for `bytes`.
std::uint32_t dynamic_shared(const KernelInfo& kernel, std::uint32_t bytes);

/// Gives the persistent form an attribute of the original. As it may have less dynamic shared memory than that, it gets
/// as much as it can, and launches with more are in original form (Context::fit_of). If it cannot have another
/// attribute, all are, in that context. With KernelInfo::mutex.
void apply_attribute(Instance& instance, CUfunction_attribute attribute, int value);

/// All kernels of this process. Any thread; find() is on the launch path and takes no lock in the usual case.
class Kernels {
 public:
  static Kernels& get();

  void add(const void* handle, std::shared_ptr<KernelInfo> kernel);
  /// The kernel launched by this CUfunction or CUkernel, or null. Valid until its image is unloaded.
  KernelInfo* find(const void* handle);
  std::shared_ptr<KernelInfo> find_shared(const void* handle);
  /// Kernels of this name in images loaded as libraries, with their handles: some are CUkernels, others the functions
  /// that these have in a context.
  std::vector<std::pair<const void*, std::shared_ptr<KernelInfo>>> library_kernels(const std::string& name);
  /// Forgets every handle of these kernels. Nobody may be launching them (the program is unloading their image).
  void remove(const std::vector<std::shared_ptr<KernelInfo>>& kernels);

  /// Kernels launched since the last call (or all), as gpuctl explain shows them.
  std::vector<gpuctl::ipc::Kernel> report(bool all);

  /// In a forked child.
  void forget_after_fork();

 private:
  std::shared_mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<KernelInfo>> by_handle_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace gpuslice

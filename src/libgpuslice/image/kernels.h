// What is known of each kernel that the program can launch, found by the handle that the program launches it with.
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
#include <utility>
#include <vector>

#include "ipc/types.h"
#include "libgpuslice/base/launch_words.h"
#include "ptx/blocks_wait.h"

namespace gpuslice {

/// Where one parameter lies in the parameter block.
struct Parameter {
  std::uint32_t offset;
  std::uint32_t size;
};

struct KernelInfo;
class Context;

/// Forms of an image's kernels that are still being made (modules/background_forms.h).
class BackgroundForms {
 public:
  /// Called at a launch, in the context that the image is loaded in. Loads the forms if they are compiled and may be
  /// loaded now.
  virtual void load_if_idle() = 0;
  /// Why the image's kernels are in their original form, as a phrase; null where each kernel's own reason says it.
  virtual const char* phrase() const = 0;

 protected:
  ~BackgroundForms() = default;
};

/// A kernel in one context, ready to be launched in persistent form.
struct Instance {
  KernelInfo* kernel = nullptr;
  const Context* context = nullptr;  ///< not its handle, which may name another context after a reset
  /// Null: this kernel keeps its original form here (KernelInfo::reason). Guarded by KernelInfo::mutex.
  CUfunction persistent = nullptr;
  int max_threads = 0;
  int most_dynamic_shared = 0;  ///< bytes, without its static variables

  /// Workers that one SM holds, for the block sizes seen. The driver is asked once for each. Guarded by
  /// KernelInfo::mutex.
  struct Occupancy {
    std::uint32_t threads = 0, shared = 0;
    int per_sm = 0;
  };
  std::array<Occupancy, 4> occupancy{};
  std::uint32_t occupancy_next = 0;

  /// Duration of one block-task, smoothed; 0: not measured yet. Guarded by the context's mutex.
  double task_ns = 0;
  std::uint32_t skipped = 0;  ///< launches in original form since the last measured one. Guarded by the context's mutex
};

/// KernelInfo::original_launch of a launch that nothing limits.
inline constexpr char kNothingInForce[] = "while nothing is in force for its slice";

/// One kernel of one loaded image. What a launch in original form needs comes first, on one cache line.
struct alignas(64) KernelInfo {
  std::atomic<std::uint64_t> launches{0};
  /// Why a launch kept its original form, as the text that follows "launched" in `gpuctl explain`: the latest launch,
  /// or an earlier one that could not have the other form whatever is in force. Null: none did, or there is no other.
  std::atomic<const char*> original_launch{nullptr};
  /// For its latest launch that could not be evicted: to how many SMs of a green context it was confined, or why it was
  /// not (opaque.h).
  std::atomic<std::uint32_t> confined_sms{0};
  std::atomic<std::uint32_t> own_cluster{0};  ///< own_cluster(), once asked for
  std::atomic<const char*> anywhere{nullptr};
  std::atomic<const char*> unlimited{nullptr};  ///< or why it did not even wait for a grant
  std::atomic<bool> changed{true};              ///< since the last report to the daemon
  /// It has a persistent form. The functions below are written before this is set.
  std::atomic<bool> persistent{false};
  /// By its PTX, or by its name (blocks_may_wait()). Written before launches, or once its PTX is known.
  std::atomic<gpuctl::ptx::BlocksWait> blocks_wait{gpuctl::ptx::BlocksWait::kUnknown};
  bool is_library_kernel = false;        ///< its handle is a CUkernel
  std::atomic<bool> may_get_form{true};  ///< false once it is known that `background` brings none
  /// The background forms of its image, as they were known when the kernel became known; null: none will come.
  std::shared_ptr<BackgroundForms> background;

  std::string name;
  std::string module;             ///< short label of the image
  std::string reason;             ///< why it has this form; one line
  std::vector<Parameter> params;  ///< the program's parameters, without LaunchArgs
  std::uint32_t args_offset = 0;  ///< of LaunchArgs in that form's parameter block
  /// With block sizes other than those that gpuctl::ptx::EntryReport allows, it is launched in original form.
  bool needs_whole_warps = false;
  bool words_behind = false;             ///< gpuctl::ptx::EntryReport::words_behind
  CUkernel persistent_kernel = nullptr;  ///< set if the image is loaded as a library
  /// Set if the image is loaded as a module, which belongs to one context.
  CUfunction persistent_function = nullptr;
  bool waits_by_name = false;                           ///< then blocks may wait for those of other launches too
  std::atomic<std::uint64_t> held_by_sm{0};             ///< of its latest kind of blocks (whole_grid.h)
  std::atomic<bool> stuck{false};                       ///< a launch did not end where it was confined
  std::atomic<const char*> original_in_graph{nullptr};  ///< why it last kept its original form in a graph

  std::atomic<bool> original_in_any_case{false};  ///< of `original_launch`, where that is not kNothingInForce

  std::atomic<std::uint64_t> hash{0};   ///< hash_of(), once asked for
  std::atomic<std::uint32_t> timed{0};  ///< launches in original form that were timed (launch_timer.h)
  std::atomic<int> registers{0}, registers_original{0}, per_sm{0};
  std::atomic<std::uint32_t> task_ns{0};

  void note_original(const char* why, bool whatever_is_in_force = false) {
    original_in_any_case.store(whatever_is_in_force, std::memory_order_relaxed);
    if (original_launch.load(std::memory_order_relaxed) == why) return;
    original_launch.store(why, std::memory_order_relaxed);
    changed.store(true, std::memory_order_relaxed);
  }

  /// Another launch had its other form.
  void note_rewritten() {
    const char* why = original_launch.load(std::memory_order_relaxed);
    if (why && (why == kNothingInForce || !original_in_any_case.load(std::memory_order_relaxed)))
      note_original(nullptr);
  }

  /// A launch that goes as it came.
  void count_free_launch() {
    original_launch.store(kNothingInForce, std::memory_order_relaxed);  // before it may be reported
    count_launch();
  }

  void count_launch() {
    launches.fetch_add(1, std::memory_order_relaxed);
    changed.store(true, std::memory_order_relaxed);
  }

  /// It could not be loaded when it was wanted. Until this time it is loaded only while nothing else is under way.
  /// CLOCK_MONOTONIC; 0: it could.
  std::atomic<std::uint64_t> load_again_ns{0};
  std::timed_mutex making;  ///< held while its copy for a context is made, and loaded; taken before mutex

  std::mutex mutex;  ///< guards what follows, and reason after loading
  std::vector<std::unique_ptr<Instance>> instances;
  std::map<CUfunction_attribute, int> attributes;      ///< set by the program
  std::optional<CUfunc_cache> cache_config;            ///< set by the program
  std::optional<std::vector<Parameter>> asked_layout;  ///< as the driver said (program_parameters.h)
};

/// ipc::kernel_hash, by which the daemon knows it.
std::uint64_t hash_of(KernelInfo& kernel);

/// The dynamic shared memory, in bytes, of a persistent launch when the program asks for `bytes`.
std::uint32_t dynamic_shared(const KernelInfo& kernel, std::uint32_t bytes);

/// Gives the persistent form an attribute of the original. The persistent form may not be able to have as much dynamic
/// shared memory; then it gets as much as it can have, and launches with more are in original form (fit_of).
/// If it cannot have some other attribute, all its launches in that context are in original form. The caller holds
/// KernelInfo::mutex.
void apply_attribute(Instance& instance, CUfunction_attribute attribute, int value);

/// What find() answered to this thread, and the value of LaunchWords::kernels at that time.
struct RecentKernel {
  const void* handle = nullptr;
  KernelInfo* kernel = nullptr;
  std::uint32_t generation = 0;
};

/// Of one thread. A cache line is for two handles. Each handle has a line, and another for when that one is full: with
/// one line alone, of some hundred handles many would push each other out.
struct RecentKernels {
  struct alignas(64) Line : std::array<RecentKernel, 2> {};
  static constexpr std::size_t kLines = 256;  // a large network has some hundred kernels
  std::array<Line, kLines> lines{};

  static std::array<std::size_t, 2> lines_of(const void* handle) {
    const std::uint64_t hash = (reinterpret_cast<std::uintptr_t>(handle) >> 4) * 0x9e3779b97f4a7c15u;
    return {hash >> 56, hash >> 48 & (kLines - 1)};
  }
  const RecentKernel* find(const void* handle, std::uint32_t generation) const {
    for (const std::size_t line : lines_of(handle))
      for (const RecentKernel& one : lines[line])
        if (one.handle == handle && one.generation == generation) return &one;
    return nullptr;
  }
  /// What find() does not find. Takes the place of one of an earlier generation, or else of one of the first line.
  void add(const RecentKernel& recent) {
    for (const std::size_t line : lines_of(recent.handle))
      for (RecentKernel& one : lines[line])
        if (one.generation != recent.generation) {
          one = recent;
          return;
        }
    Line& line = lines[lines_of(recent.handle)[0]];
    line[1] = std::exchange(line[0], recent);
  }
};
/// Null: this thread asked for nothing, or ends.
extern __attribute__((tls_model("initial-exec"))) thread_local constinit RecentKernels* t_recent_kernels;

/// All kernels of this process. Any thread. find() is on the launch path and usually takes no lock.
class Kernels {
 public:
  static Kernels& get();

  void add(const void* handle, std::shared_ptr<KernelInfo> kernel);
  /// The kernel with this CUfunction or CUkernel, or null. Valid until its image is unloaded.
  KernelInfo* find(const void* handle) {
    if (const RecentKernel* recent = find_recent(handle)) return recent->kernel;
    return find_locked(handle);
  }
  /// The answer of find() if this thread asked for it lately; null: it did not. Takes no lock, and never throws.
  static const RecentKernel* find_recent(const void* handle) {
    const RecentKernels* recent = t_recent_kernels;
    if (!recent) return nullptr;
    const std::uint32_t generation = g_launch_words.kernels.load(std::memory_order_acquire);
    return recent->find(handle, generation);
  }
  std::shared_ptr<KernelInfo> find_shared(const void* handle);
  /// Kernels of this name in images loaded as libraries, with their handles. Some handles are CUkernels; others are the
  /// functions that those have in a context.
  std::vector<std::pair<const void*, std::shared_ptr<KernelInfo>>> library_kernels(const std::string& name);
  /// Forgets all handles of these kernels. No thread may be launching them (the program is unloading their image).
  void remove(const std::vector<std::shared_ptr<KernelInfo>>& kernels);

  /// A launch of the kernel with this hash_of() does not end where it was confined: its next launches are not. Returns
  /// its name; empty if it was noted before, or is gone.
  std::string note_stuck(std::uint64_t hash);
  /// The launch has ended after all: its next launches are confined as ever.
  void note_ended(std::uint64_t hash);

  /// Whether a kernel was launched that may wait for what others write in memory: other blocks, or the program.
  bool any_may_wait();

  /// Kernels launched since the last call, or all kernels, as `gpuctl explain` shows them.
  std::vector<gpuctl::ipc::Kernel> report(bool all);

  /// In a forked child.
  void forget_after_fork();

 private:
  KernelInfo* find_locked(const void* handle);

  std::shared_mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<KernelInfo>> by_handle_;
};

}  // namespace gpuslice

// One CUDA context under management, as the hooks see it: its kernels' copies, and launches into it. Its agent
// (agent/agent.h) continues the launches; what both use is in context_state.h, locks in launch_book.h.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "libgpuslice/image/kernels.h"
#include "libgpuslice/launch/context_state.h"
#include "libgpuslice/launch/outstanding.h"
#include "libgpuslice/streams/opaque.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

/// Most kernels of one graph that run in persistent form; these are the first ones of the graph. They need a launch
/// block each, and a quarter of all launch blocks leaves some for other launches.
inline constexpr std::size_t kMostGraphKernels = kSlots / 4;

/// A kernel of a graph that is about to be launched and that could run in persistent form.
struct GraphCandidate {
  Instance* instance;
  const LaunchConfig* config;
  const std::vector<std::byte>* params;  ///< packed as for Context::launch()
};

/// Any thread. agent/contexts.h finds the object of a context.
class Context final : public Opaque::Owner, public LaunchSource {
 public:
  /// `sms`: SMs of the device.
  Context(CUcontext context, int device_index, std::uint32_t sms, Slots slots)
      : state_(context, device_index, sms, std::move(slots), *this) {}

  CUcontext handle() const { return state_.handle; }
  /// What the daemon grants.
  const GrantView& view() const { return state_.view; }
  Opaque& opaque() { return state_.opaque; }
  /// For the agent.
  ContextState& state() { return state_; }

  /// This context's copy of a kernel. The first call makes it. The context must be current.
  ///
  /// Null: the kernel cannot be launched in persistent form here, or not yet. Loading its code blocks until the device
  /// is idle. So it is loaded at the kernel's first launch, where the program would have loaded the original, or when
  /// nothing else is under way (may_load.h).
  Instance* instance_of(KernelInfo& kernel);
  /// Loads this context's copy, at a time when loading is allowed.
  void load_instance(KernelInfo& kernel);

  enum class Outcome {
    kLaunched,      ///< launched in persistent form
    kOriginalForm,  ///< not launched: so short that it may run in original form
    kCannot,        ///< not launched: this launch cannot be in persistent form
  };
  /// Launches in persistent form. `params` is the packed parameter block of args_offset + sizeof(LaunchArgs) bytes. The
  /// context must be current. `result` receives the driver's answer if the driver was called. With kCannot, `why`
  /// receives the text that follows "launched" in `gpuctl explain`; it is unchanged if the only reason is the launch's
  /// shape.
  Outcome launch(Instance& instance, LaunchConfig&& config, std::vector<std::byte>&& params, CUresult* result,
                 const char** why);

  /// Launches a graph. `candidates`, at most kMostGraphKernels, come in an order in which they may run. `original`: its
  /// other kernels, as one launch in original form; without blocks there are none. `branches`: some of the candidates
  /// may run at the same time. If any kernel has its original form, the launch waits for a grant. Calls `arm(number,
  /// launch)` for each candidate in that order, to write the kernel into the graph as `launch` says, or in its original
  /// form if `launch` is null. Then calls `launch_it`. Neither is called with a lock held that the agent takes. Returns
  /// the result of launch_it(), or the error of an arm() call that could not restore a kernel's original form.
  using Arm = std::function<CUresult(std::size_t, const Launch*)>;
  CUresult launch_graph(CUstream stream, const std::vector<GraphCandidate>& candidates, Opaque::Launch original,
                        bool branches, const Arm& arm, const std::function<CUresult()>& launch_it);

  void set_latency_critical(CUstream stream, bool on);
  /// The program destroys the stream. Its outstanding launches still complete.
  void stream_destroyed(CUstream stream);

  /// Counts one launch, of a kernel or a graph, that goes to the driver unchanged.
  void count_original_launch() { state_.usage.count_original_launch(); }
  /// Publishes the usage again, after Activity wrote another demand in its place.
  void publish_usage();

  bool quiesce(std::optional<Patience::Limits> limits) override;
  void resume_launches() override;
  /// Whether no launch is known to be on the GPU. The context need not be current.
  bool idle() override;
  int device() const override { return view().device_index(); }

  /// A kernel in original form with this many blocks is about to be launched. No such kernel was on the GPU.
  void opaque_started(std::uint64_t blocks, const OpaqueJob& job) override;
  void at_gate(Waiting& one) override;
  void past_gate(Waiting& one) override;
  /// Whether management here has ended: the driver reported that the context is broken, the program destroys it, or the
  /// process exits. Threads that wait for launches then stop waiting.
  bool ended() const override { return state_.agent.ended(); }

  /// For a context that is about to be destroyed. Nothing touches its memory after this.
  void end_with_agent();
  /// For one that may be gone already, after let_holders_work(). Touches none of its memory.
  void end_without_memory();
  /// What is still there and rests ends by itself. Before a call that may end the context.
  void let_holders_work();
  /// Called several times a second by a thread that never calls the driver. The agent may be stuck in a driver call
  /// that waits for an evicted launch, which in turn waits for the agent. If so, resting holders are told to work.
  void rescue();

 private:
  Instance* make_instance(KernelInfo& kernel);
  Instance* known_instance(KernelInfo& kernel, bool& known) const;

  // The caller holds the book's mutex in what follows. Those that take its lock give it up while they wait.
  /// Waits until `done()`, which depends on launches of `stream` (null: of any). Returns false if that is no use, since
  /// they may wait for the program (patience.h), and where nothing is managed any more. `limits`: as for quiesce().
  bool wait_for_launches(std::unique_lock<std::mutex>& lock, Stream* stream, const std::function<bool()>& done,
                         std::optional<Patience::Limits> limits = std::nullopt);
  const char* why_crowded(const Stream& stream, bool workers_get_on) const;
  bool short_enough(Instance& instance, std::uint64_t tasks, std::uint32_t per_sm);
  void plan(Launch& launch, const Stream& stream);
  void add_to_book(Stream& stream, std::unique_ptr<Launch> owned, std::uint32_t slot);
  std::uint32_t workers_for(const Launch& launch, std::uint32_t allowed) const;

  ContextState state_;
};

}  // namespace gpuslice

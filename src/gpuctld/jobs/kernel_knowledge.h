// What the daemon has learnt about kernels from the launches that clients report: a sched::Predictor and the kernels'
// names, kept in a file across restarts. One thread.
#pragma once

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "gpuctld/clients/grant_history.h"
#include "ipc/stub.h"
#include "ipc/types.h"
#include "sched/predictor/predictor.h"

namespace gpuctl::daemon {

/// Kernels remembered of all clients ever. Later ones are not learnt.
inline constexpr std::size_t kMaxLearntKernels = 4096;
/// For a kernel that was never seen to end. The quantum of most policies.
inline constexpr sched::Time kUnknownDuration = std::chrono::milliseconds{1};
/// For a kernel that was never evicted. On an H200 an eviction cost 56 to 101 us, the return included
/// (docs/history/schedulers.md).
inline constexpr sched::Time kUnknownEviction = std::chrono::microseconds{70};

class KernelKnowledge {
 public:
  /// How long the launch will take with the whole device of `sms` SMs: as learnt, else from the time of its
  /// block-tasks, else kUnknownDuration.
  sched::Time predict(const ipc::Head& launch, std::uint32_t sms) const;
  /// Whether a duration was learnt from a launch of the kernel.
  bool knows_duration(std::uint64_t kernel) const;
  sched::Time eviction(std::uint64_t kernel) const;

  /// Learns from a launch that ended on a device of `sms` SMs. `held`: the SMs that it had, if known. Returns how long
  /// it would have taken alone on the whole device; 0: unknown, and no duration was learnt.
  sched::Time learn(const ipc::Record& launch, std::uint32_t sms, const std::optional<GrantHistory::Held>& held = {});
  /// Names the kernel with that ipc::kernel_hash.
  void name(const std::string& module, const std::string& name);

  /// The kernel's number in curve() and sched::Arrival; kNoId if nothing was learnt about it.
  std::uint32_t id(std::uint64_t kernel) const;
  static constexpr std::uint32_t kNoId = UINT32_MAX;
  /// How the kernel scales on a device of `sms` SMs; empty if fewer than two numbers of SMs were seen. Valid until the
  /// next learn() or curve().
  std::span<const sched::CurvePoint> curve(std::uint32_t id, std::uint32_t sms);
  /// Speed of the kernel with `granted` SMs, 1 being its speed with all of `usable`: by its curve, else in proportion.
  double speed(std::uint32_t id, std::uint32_t granted, std::uint32_t usable, std::uint32_t sms);

  /// The name given; empty if none was.
  std::string name_of(std::uint64_t kernel) const;

  /// Whether some kernels have no name yet.
  bool wants_names() const { return unnamed_ > 0; }

  /// Kernels with launches, by name.
  std::vector<ipc::KernelDurations> list() const;

  boost::json::value to_json() const;
  /// Replaces everything; on an error nothing changes.
  Result<void> from_json(const boost::json::value& state);
  /// True if something was learnt since the last call.
  bool take_changed() { return std::exchange(changed_, false); }

 private:
  struct Kernel {
    std::uint32_t id = 0;  ///< in predictor_
    std::string name, module;
    std::uint64_t launches = 0;
    double mean_ns = 0;          ///< of all launches, each as if alone on the whole device
    double predicted_ns = 0;     ///< for the latest launch
    std::uint32_t unsteady = 0;  ///< launches in a row whose SMs changed too much for a point of the curve
  };
  sched::Time alone(const ipc::Record& launch, std::uint32_t sms, const std::optional<GrantHistory::Held>& held);
  sched::Time alone_in_original_form(const ipc::Record& launch, std::uint32_t sms);
  void learn_curve(Kernel& kernel, const ipc::Record& launch, const GrantHistory::Held& held);
  Kernel* find_or_add(std::uint64_t hash);

  sched::Predictor predictor_;
  std::unordered_map<std::uint64_t, Kernel> kernels_;  ///< by ipc::kernel_hash
  std::size_t unnamed_ = 0;
  bool changed_ = false;
};

}  // namespace gpuctl::daemon

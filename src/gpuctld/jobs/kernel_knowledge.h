// What the daemon has learnt about kernels from the launches that clients report: a sched::Predictor and the kernels'
// names, kept in a file across restarts. Each user's programs teach about that user's kernels alone, so nobody's
// reports change what is expected of the launches of others. One thread.
#pragma once

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpuctld/clients/grant_history.h"
#include "ipc/stub.h"
#include "ipc/types.h"
#include "sched/predictor/predictor.h"

namespace gpuctl::daemon {

/// Kernels remembered of one user, and of all. A new one takes the place of the one that was launched the longest time
/// ago: of the same user, or where there is no room for all, of the user with the most.
inline constexpr std::size_t kMaxLearntKernelsOfUser = 1024;
inline constexpr std::size_t kMaxLearntKernels = 4096;
/// Bytes of their names and modules, of one user and of all; room is made in the same way.
inline constexpr std::size_t kMaxLearntTextOfUser = 256u << 10, kMaxLearntText = 4 * kMaxLearntTextOfUser;
/// For a kernel that was never seen to end. The quantum of most policies.
inline constexpr sched::Time kUnknownDuration = std::chrono::milliseconds{1};
/// For a kernel that was never evicted. On an H200 an eviction cost 56 to 101 us, the return included
/// (bench/results/policies-for-jobs-h200-2026-11-21.txt, and -22.txt).
inline constexpr sched::Time kUnknownEviction = std::chrono::microseconds{70};

class KernelKnowledge {
 public:
  /// How long the launch will take with the whole device of `sms` SMs: as learnt, else from the time of its
  /// block-tasks, else kUnknownDuration.
  sched::Time predict(std::uint32_t uid, const ipc::Head& launch, std::uint32_t sms) const;
  /// Whether a duration was learnt from a launch of the kernel.
  bool knows_duration(std::uint32_t uid, std::uint64_t kernel) const;
  sched::Time eviction(std::uint32_t uid, std::uint64_t kernel) const;

  /// Learns from a launch that ended on a device of `sms` SMs. `held`: the SMs that it had, if known. Returns how long
  /// it would have taken alone on the whole device; 0: unknown, and no duration was learnt.
  sched::Time learn(std::uint32_t uid, const ipc::Record& launch, std::uint32_t sms,
                    const std::optional<GrantHistory::Held>& held = {});
  /// Names the user's kernel with that ipc::kernel_hash.
  void name(std::uint32_t uid, const std::string& module, const std::string& name);

  /// The kernel's number in curve() and sched::Arrival; kNoId if nothing was learnt about it. When a kernel is
  /// forgotten, another may get its number.
  std::uint32_t id(std::uint32_t uid, std::uint64_t kernel) const;
  static constexpr std::uint32_t kNoId = UINT32_MAX;
  /// How the kernel scales on a device of `sms` SMs; empty if fewer than two numbers of SMs were seen. Valid until the
  /// next learn() or curve().
  std::span<const sched::CurvePoint> curve(std::uint32_t id, std::uint32_t sms);
  /// Speed of the kernel with `granted` SMs, 1 being its speed with all of `usable`: by its curve, else in proportion.
  double speed(std::uint32_t id, std::uint32_t granted, std::uint32_t usable, std::uint32_t sms);

  /// The name given and the module; empty if none was.
  std::pair<std::string, std::string> name_of(std::uint32_t uid, std::uint64_t kernel) const;
  /// The kernel as ListKernels and Record name it.
  static std::string key_of(std::uint64_t kernel);

  /// Whether some of the user's kernels have no name yet.
  bool wants_names(std::uint32_t uid) const;

  /// Forgets the user's kernels; without a user all. Returns how many.
  std::size_t forget(std::optional<std::uint32_t> uid);

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
    std::list<std::uint64_t>::iterator place;  ///< in User::recent
  };
  struct User {
    std::list<std::uint64_t> recent;  ///< kernels: the one that was launched the longest time ago comes first
    std::size_t unnamed = 0;
    std::size_t text = 0;  ///< bytes of names and modules
  };
  using Key = std::pair<std::uint32_t, std::uint64_t>;  ///< uid, ipc::kernel_hash
  sched::Time alone(std::uint32_t uid, const ipc::Record& launch, std::uint32_t sms,
                    const std::optional<GrantHistory::Held>& held);
  sched::Time alone_in_original_form(std::uint32_t uid, const ipc::Record& launch, std::uint32_t sms);
  void learn_curve(Kernel& kernel, const ipc::Record& launch, const GrantHistory::Held& held);
  const Kernel* find(std::uint32_t uid, std::uint64_t hash) const;
  Kernel& find_or_add(std::uint32_t uid, std::uint64_t hash);
  Kernel& add(std::uint32_t uid, std::uint64_t hash);
  void make_room(std::uint32_t uid);
  void give_name(std::uint32_t uid, Kernel& kernel, std::string name, std::string module);
  void drop(std::uint32_t uid, std::uint64_t hash);

  sched::Predictor predictor_;
  std::map<Key, Kernel> kernels_;
  std::map<std::uint32_t, User> users_;
  std::size_t text_ = 0;  ///< of all users
  bool changed_ = false;
};

}  // namespace gpuctl::daemon

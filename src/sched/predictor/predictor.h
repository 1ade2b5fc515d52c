// What has been learnt about each kernel: how long a launch will take, what evicting it costs, how it scales with SMs,
// and how wrong the predictions were. Pure: the owner persists the text of to_json.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sched/predictor/ridge.h"
#include "sched/predictor/time_curve.h"

namespace gpuctl::sched {

/// The remaining time of a launch, corrected by its progress (remaining = remaining block-tasks x time per block-task).
/// `ran`: the time that it ran, converted to time on the whole device. The more of the launch has been seen, the less
/// the prediction counts: with a fraction f done it has weight 1 - f.
Time corrected_remaining(Time predicted, Time ran, std::uint64_t tasks_done, std::uint64_t tasks_total);

/// Times of curves are for this many block-tasks, whatever the size of the launch: fine enough for any launch, and no
/// duration is too long.
inline constexpr double kCurveTasks = 1'000'000;

/// For `gpuctl show --kernels`.
struct KernelKnowledge {
  std::string name;
  std::uint64_t launches = 0;
  double error = 0;  ///< mean relative error of the predictions made before each launch; recent ones count more
  Time last{}, eviction{};
  std::vector<CurvePoint> curve;  ///< for kCurveTasks block-tasks
};

/// The caller names the kernels. Ids are small, given in the order of first mention, and valid until forget() or the
/// end of the object. Not thread-safe.
class Predictor {
 public:
  std::uint32_t id(std::string_view kernel);
  /// Forgets the kernel. Its id may be given to another one.
  void forget(std::uint32_t kernel);

  /// `fallback` for unknown kernels.
  Time predict(std::uint32_t kernel, const LaunchShape& shape, Time fallback) const;
  /// FLEP 4.2: the mean of the latest evictions; `fallback` before the first.
  Time eviction(std::uint32_t kernel, Time fallback) const;
  /// TimeCurve::filled, for kCurveTasks block-tasks. Empty if too little is known. Valid until the next learn_curve or
  /// read.
  std::span<const CurvePoint> curve(std::uint32_t kernel, CapSM device);

  /// For a launch that had the whole device to itself, or whose time was converted to that.
  void learn(std::uint32_t kernel, const LaunchShape& shape, Time duration);
  void learn_eviction(std::uint32_t kernel, Time cost);
  /// For a launch of `block_tasks` block-tasks that took `duration` with `capsm`.
  void learn_curve(std::uint32_t kernel, CapSM capsm, std::uint64_t block_tasks, Time duration);

  /// By id.
  std::vector<KernelKnowledge> knowledge() const;

  boost::json::value to_json() const;
  /// Replaces everything; on an error nothing changes. Ids given before stay valid only for kernels that `state` names
  /// or that are mentioned again.
  Result<void> from_json(const boost::json::value& state);

 private:
  struct Kernel {
    std::string name;
    std::optional<RidgeModel> model;  ///< none: forgotten
    std::uint64_t launches = 0;
    double error = 0;
    Time last{};
    std::uint64_t evictions = 0;
    double eviction_ns = 0;
    TimeCurve curve;
  };

  const Kernel* get(std::uint32_t kernel) const {
    return kernel < kernels_.size() && kernels_[kernel].model ? &kernels_[kernel] : nullptr;
  }
  Kernel* get(std::uint32_t kernel) { return const_cast<Kernel*>(std::as_const(*this).get(kernel)); }

  std::vector<Kernel> kernels_;
  std::vector<std::uint32_t> free_;  ///< ids of forgotten kernels
  std::map<std::string, std::uint32_t, std::less<>> ids_;
};

}  // namespace gpuctl::sched

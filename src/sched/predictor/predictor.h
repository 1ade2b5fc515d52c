// What has been learnt about each kernel: how long a launch will take, what evicting it costs, how it scales with SMs,
// and how far off the predictions were. Pure: the owner persists the text of to_json.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sched/predictor/ridge.h"
#include "sched/predictor/time_curve.h"

namespace gpuctl::sched {

/// What is left of a launch, corrected by its progress (remaining = remaining block-tasks x time per
/// block-task). `ran`: time it has run on the whole device (or as much longer as it had less of it). The prediction
/// counts the less the more of the launch has been seen: with a fraction f done, 1 - f of it.
Time corrected_remaining(Time predicted, Time ran, std::uint64_t tasks_done, std::uint64_t tasks_total);

/// Times of curves are of so many block-tasks, whatever the size of the launch: fine enough for any, and no duration is
/// too long.
inline constexpr double kCurveTasks = 1'000'000;

/// For `gpuctl show --kernels`.
struct KernelKnowledge {
  std::string name;
  std::uint64_t launches = 0;
  double error = 0;  ///< mean relative error of the predictions made before each launch, recent ones count more
  Time last{}, eviction{};
  std::vector<CurvePoint> curve;  ///< in kCurveTasks block-tasks
};

/// Kernels are named by the caller; ids are small, given in the order of first mention, and stay as long as the object.
/// Not thread-safe.
class Predictor {
 public:
  explicit Predictor(ModelFactory factory = make_ridge_model) : factory_(std::move(factory)) {}

  std::uint32_t id(std::string_view kernel);

  /// Unknown kernels: `fallback`.
  Time predict(std::uint32_t kernel, const LaunchShape& shape, Time fallback) const;
  /// FLEP 4.2: the mean of the last evictions; `fallback` before the first.
  Time eviction(std::uint32_t kernel, Time fallback) const;
  /// TimeCurve::filled, in kCurveTasks block-tasks. Empty: too little is known. Valid until the next learn_curve or
  /// read.
  std::span<const CurvePoint> curve(std::uint32_t kernel, CapSM device);

  /// A launch that had the whole device to itself, or whose time was scaled to that.
  void learn(std::uint32_t kernel, const LaunchShape& shape, Time duration);
  void learn_eviction(std::uint32_t kernel, Time cost);
  /// A launch of so many block-tasks took `duration` with `capsm`.
  void learn_curve(std::uint32_t kernel, CapSM capsm, std::uint64_t block_tasks, Time duration);

  std::vector<KernelKnowledge> knowledge() const;

  boost::json::value to_json() const;
  /// Replaces everything; on an error nothing changes. Ids given before stay valid only for kernels named in `state`
  /// or mentioned again.
  Result<void> from_json(const boost::json::value& state);

 private:
  struct Kernel {
    std::string name;
    std::unique_ptr<DurationModel> model;
    std::uint64_t launches = 0;
    double error = 0;
    Time last{};
    std::uint64_t evictions = 0;
    double eviction_ns = 0;
    TimeCurve curve;
  };

  ModelFactory factory_;
  std::vector<Kernel> kernels_;
  std::map<std::string, std::uint32_t, std::less<>> ids_;
};

}  // namespace gpuctl::sched

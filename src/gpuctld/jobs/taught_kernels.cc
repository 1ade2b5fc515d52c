// What users know beforehand of their kernels (gpuctl profile --load).
#include <algorithm>
#include <cmath>

#include "gpuctld/jobs/kernel_knowledge.h"
#include "sched/predictor/left_out_error.h"

namespace gpuctl::daemon {

using sched::Time;

namespace {

Time of_us(double us) {
  return Time{std::llround(us * 1000)};
}

}  // namespace

void KernelKnowledge::teach(std::uint32_t uid, const ipc::KernelProfile& profile) {
  const std::uint64_t hash = ipc::kernel_hash(profile.module, profile.name);
  if (find(uid, hash) != nullptr) drop(uid, hash);
  Kernel& kernel = find_or_add(uid, hash);
  for (const ipc::ProfileInput& input : profile.inputs) {
    const sched::Sample sample = sched::sample_of(input);
    for (std::uint64_t i = 0; i < std::min(sample.launches, sched::kMostTimesLearnt); ++i) {
      predictor_.learn(kernel.id, sample.shape, sample.duration);
      kernel.mean_ns +=
          (static_cast<double>(sample.duration.count()) - kernel.mean_ns) / static_cast<double>(++kernel.launches);
    }
  }
  // The curve is for sched::kCurveTasks block-tasks, and so this many are no rounding.
  constexpr auto kTasks = static_cast<std::uint64_t>(sched::kCurveTasks);
  for (const ipc::ProfilePoint& point : profile.curve)
    predictor_.learn_curve(kernel.id, sched::CapSM{static_cast<std::uint32_t>(point.sms)}, kTasks,
                           of_us(point.block_task_us * sched::kCurveTasks));
  if (profile.evict_us > 0) predictor_.learn_eviction(kernel.id, of_us(profile.evict_us));
  name(uid, profile.module, profile.name);
  changed_ = true;
}

}  // namespace gpuctl::daemon

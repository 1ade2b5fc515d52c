#include "gpuctl/profile/profile_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpuctl::cli {

namespace {

/// As many items as `most`, those with the most launches, in the order that they had.
template <class T>
void keep_most_launched(std::vector<T>& items, std::size_t most) {
  if (items.size() <= most) return;
  std::vector<std::int64_t> launches;
  for (const T& item : items) launches.push_back(item.launches);
  std::nth_element(launches.begin(), launches.begin() + static_cast<std::ptrdiff_t>(most), launches.end(),
                   std::greater<>());
  const std::int64_t least = launches[most];
  std::erase_if(items, [&](const T& item) { return item.launches < least; });
  while (items.size() > most)  // of those that were launched alike, the first ones go
    items.erase(std::find_if(items.begin(), items.end(), [&](const T& item) { return item.launches == least; }));
}

}  // namespace

ProfileBuilder::ProfileBuilder(std::vector<ipc::KernelProfile> earlier) {
  for (ipc::KernelProfile& profile : earlier) {
    Kernel& kernel = earlier_[{profile.module, profile.name}];
    kernel.name = std::move(profile.name);
    kernel.module = std::move(profile.module);
    kernel.evict_us = profile.evict_us;
    if (profile.block_task_us > 0) kernel.task.add(profile.block_task_us);
    for (const ipc::ProfileInput& input : profile.inputs)
      kernel.whole[{input.blocks, input.threads, input.shared_bytes, input.input_bytes}].add(input.alone_us,
                                                                                             input.launches);
    for (const ipc::ProfilePoint& point : profile.curve)
      kernel.curve[point.sms].add(point.block_task_us, point.launches);
  }
}

void ProfileBuilder::add(const ipc::Launch& launch, bool whole) {
  if (launch.key.empty() || launch.blocks < 1 || launch.threads < 1) return;
  Kernel& kernel = kernels_[launch.key];
  if (!launch.kernel.empty()) kernel.name = launch.kernel, kernel.module = launch.module;
  if (launch.block_task_us > 0) kernel.task.add(launch.block_task_us);
  if (launch.alone_us > 0)
    (whole ? kernel.whole : kernel.part)[{launch.blocks, launch.threads, launch.shared_bytes, launch.input_bytes}].add(
        launch.alone_us);
  const auto sms = static_cast<std::int64_t>(std::llround(launch.sms));
  if (sms < 1 || launch.ran_us <= 0) return;
  (launch.original ? kernel.confined : kernel.curve)[sms].add(launch.ran_us / static_cast<double>(launch.blocks));
}

void ProfileBuilder::add(const std::vector<ipc::KernelDurations>& known) {
  for (const ipc::KernelDurations& one : known) {
    const auto found = kernels_.find(one.key);
    if (found == kernels_.end()) continue;
    found->second.evict_us = one.evict_us;
    if (one.name.empty() || one.name == one.key) continue;  // the daemon has no name either
    found->second.name = one.name;
    found->second.module = one.module;
  }
}

std::size_t ProfileBuilder::nameless() const {
  return static_cast<std::size_t>(
      std::count_if(kernels_.begin(), kernels_.end(), [](const auto& entry) { return entry.second.name.empty(); }));
}

void ProfileBuilder::merge(Kernel& into, const Kernel& kernel) const {
  into.name = kernel.name;
  into.module = kernel.module;
  if (kernel.evict_us > 0) into.evict_us = kernel.evict_us;
  if (kernel.task.count > 0) into.task = kernel.task;
  // What a part of the GPU says is for kernels that never had all of it.
  for (const auto& [shape, mean] : kernel.whole.empty() ? kernel.part : kernel.whole)
    into.whole[shape].add(mean.value, mean.count);
  for (const auto& [sms, mean] : kernel.curve.empty() ? kernel.confined : kernel.curve)
    into.curve[sms].add(mean.value, mean.count);
}

ipc::KernelProfile ProfileBuilder::profile_of(const Kernel& kernel) {
  ipc::KernelProfile profile{.name = kernel.name,
                             .module = kernel.module,
                             .block_task_us = kernel.task.value,
                             .evict_us = kernel.evict_us,
                             .inputs = {},
                             .curve = {}};
  for (const auto& [shape, mean] : kernel.whole) {
    const auto& [blocks, threads, shared_bytes, input_bytes] = shape;
    profile.inputs.push_back({.blocks = blocks,
                              .threads = threads,
                              .shared_bytes = shared_bytes,
                              .input_bytes = input_bytes,
                              .launches = mean.count,
                              .alone_us = mean.value});
  }
  for (const auto& [sms, mean] : kernel.curve)
    profile.curve.push_back({.sms = sms, .block_task_us = mean.value, .launches = mean.count});
  keep_most_launched(profile.inputs, ipc::kMostProfileInputs);
  keep_most_launched(profile.curve, ipc::kMostProfilePoints);
  return profile;
}

std::vector<ipc::KernelProfile> ProfileBuilder::finish() const {
  auto all = earlier_;
  for (const auto& [key, kernel] : kernels_)
    if (!kernel.name.empty()) merge(all[{kernel.module, kernel.name}], kernel);
  std::vector<ipc::KernelProfile> profiles;
  for (const auto& [name, kernel] : all) profiles.push_back(profile_of(kernel));
  std::stable_sort(profiles.begin(), profiles.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return profiles;
}

}  // namespace gpuctl::cli

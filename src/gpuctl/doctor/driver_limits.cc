#include "gpuctl/doctor/driver_limits.h"

#include <algorithm>

namespace gpuctl::cli {
namespace {

/// nvmlGetMemoryLimits_v1_t. nvml.h of the toolkit that this is built with may be older.
struct Limits {
  const char* name_space;         // in: the directory of the cgroup
  unsigned long long soft, hard;  // out, in bytes
  unsigned long long used;
};

}  // namespace

DriverLimits::DriverLimits(const char* library) : nvml_(library, "nvmlDeviceGetMemoryLimits_v1") {}

bool DriverLimits::can(const char* library) {
  return NvmlLibrary(library, "nvmlDeviceSetMemoryLimits_v1").function<void()>() != nullptr;
}

std::optional<std::int64_t> DriverLimits::of(const std::string& cgroup, const std::string& uuid,
                                             std::int64_t memory) const {
  auto* const ask = nvml_.function<int(NvmlLibrary::Device, Limits*)>();
  const NvmlLibrary::Device device = nvml_.device(uuid);
  if (device == nullptr) return {};
  unsigned long long least = static_cast<unsigned long long>(memory);  // that, or more, stands for no limit
  const std::string top = "/sys/fs/cgroup";
  for (std::string directory = top + cgroup;; directory.resize(std::max(directory.rfind('/'), top.size()))) {
    Limits limits{.name_space = directory.c_str(), .soft = 0, .hard = 0, .used = 0};
    // It fails for a GPU of MIG, and for a cgroup without a limit.
    if (ask(device, &limits) == NvmlLibrary::kSuccess) least = std::min(least, limits.hard);
    if (directory.size() <= top.size()) break;
  }
  if (least == static_cast<unsigned long long>(memory)) return {};
  return static_cast<std::int64_t>(least);
}

}  // namespace gpuctl::cli

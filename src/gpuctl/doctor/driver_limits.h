// NVIDIA's driver, from 615 on, can limit the memory of a GPU for all processes of a cgroup, with gpuctl's library or
// without. gpuctld sets such limits for control groups of slices, an administrator or a container's runtime for others.
// Here they are only read: whoever may run gpuctl may do that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/nvml_library.h"

namespace gpuctl::cli {

class DriverLimits {
 public:
  static constexpr char kLibrary[] = "libnvidia-ml.so.1";

  /// Asks NVML, `library`. One that knows nothing of such limits is not started.
  explicit DriverLimits(const char* library = kLibrary);

  /// Whether the driver can be told of such limits.
  static bool can(const char* library = kLibrary);

  /// Bytes of the GPU with this UUID and so much memory that the processes of the cgroup may have together, what the
  /// driver needs for contexts and code included: by the least limit of it and those above. `cgroup`: its path in the
  /// tree of version 2; "": the uppermost that is seen here, as in a container. Nothing: no limit.
  std::optional<std::int64_t> of(const std::string& cgroup, const std::string& uuid, std::int64_t memory) const;

 private:
  NvmlLibrary nvml_;
};

}  // namespace gpuctl::cli

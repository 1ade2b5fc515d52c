// The GPUs of this machine, as the public driver API reports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpuctld/config/config.h"
#include "sched/on_gpu.h"

namespace gpuctl::daemon {

struct Gpu {
  int index = 0;  ///< the driver's index, before any selection
  std::string name;
  std::string uuid;       ///< "GPU-" and 32 hexadecimal digits with dashes, as nvidia-smi prints it
  bool software = false;  ///< for this room: others ask what the GPU needs
  std::uint32_t sms = 0;
  std::uint64_t memory_bytes = 0;
  bool exclusive = false;  ///< in compute mode EXCLUSIVE_PROCESS: one process, or one MPS, may use it
  std::optional<std::uint64_t> millijoules =
      {};  ///< used when it was asked, since the driver was loaded; none: unknown

  std::string_view kind() const { return software ? "software" : "cuda"; }  ///< as clients of the protocol read it
  /// Programs run side by side, and can share a fault, only under MPS.
  bool needs_mps() const { return !software; }
};

/// Of how much the settings of slices speak.
sched::GpuSize size_of(const Gpu& gpu);

/// libcuda.so.1 of the software GPU: beside the running program in a build tree, else the installed one.
std::string software_gpu_library();

/// What a driver reported, or why it cannot be used. The software GPU is used if `software` asks for it, and never
/// otherwise, even if its library stands where the driver's is looked for.
Result<std::vector<Gpu>> usable_devices(Result<std::vector<Gpu>> found, bool software);

/// Those that the configuration selects: all if it selects none.
Result<std::vector<Gpu>> select_devices(std::vector<Gpu> devices, const std::vector<DeviceSelector>& selectors);

/// Whether two UUIDs name the same device: "GPU-", dashes and letter case do not count.
bool same_uuid(std::string_view a, std::string_view b);

}  // namespace gpuctl::daemon

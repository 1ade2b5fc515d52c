// The GPUs of this machine, as the public driver API reports them. The daemon itself never initialises CUDA: a context
// would cost it memory on every GPU and tie its life to the driver's.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuctl::daemon {

struct Gpu {
  int index = 0;  ///< the driver's index, before any selection
  std::string name;
  std::string uuid;  ///< "GPU-" and 32 hexadecimal digits with dashes, as nvidia-smi prints it
  bool software = false;
  std::uint32_t sms = 0;
  std::uint64_t memory_bytes = 0;
};

/// How long a driver may take to answer: it initialises every GPU of the machine first.
inline constexpr std::chrono::seconds kProbeTimeout{60};

/// Asks the CUDA driver library `library` (a path, or a name for the dynamic linker) in a child process that ends with
/// the call. Call it before the process has threads. The list is empty if the driver has no devices.
Result<std::vector<Gpu>> probe_devices(const std::string& library, bool software,
                                       std::chrono::milliseconds timeout = kProbeTimeout);

/// libcuda.so.1 of the software GPU: beside the running program in a build tree, else the installed one.
std::string software_gpu_library();

/// The NVIDIA GPUs; the software GPU if there are none or if `software` asks for it. Then `note` gets a line that says
/// so.
Result<std::vector<Gpu>> find_devices(bool software, std::string& note);

/// Whether two UUIDs name the same device: "GPU-", dashes and letter case do not count.
bool same_uuid(std::string_view a, std::string_view b);

}  // namespace gpuctl::daemon

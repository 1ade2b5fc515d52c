#include "gpuctld/host/devices.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/installed.h"

#ifndef GPUCTL_SOFTGPU_DIR
#error "the build says where the software GPU is installed"
#endif

namespace gpuctl::daemon {

sched::GpuSize size_of(const Gpu& gpu) {
  return {.index = gpu.index, .uuid = gpu.uuid, .sms = sched::CapSM{gpu.sms}, .memory = gpu.memory_bytes};
}

std::string software_gpu_library() {
  std::error_code error;
  const std::filesystem::path self = own_executable();
  if (!self.empty()) {
    const auto beside = self.parent_path() / "../../softgpu" / "libcuda.so.1";
    if (std::filesystem::exists(beside, error)) return beside.string();
  }
  return installed(self, GPUCTL_SBINDIR, GPUCTL_SOFTGPU_DIR, "libcuda.so.1").string();
}

Result<std::vector<Gpu>> usable_devices(Result<std::vector<Gpu>> found, bool software) {
  if (!found) return found;
  if (found->empty()) return fail(software ? "the software GPU has no device" : "the driver reports no device");
  const bool any = std::ranges::any_of(*found, &Gpu::software), all = std::ranges::all_of(*found, &Gpu::software);
  if (software ? !all : any)
    return fail(software ? "the library of the software GPU is another driver"
                         : "the driver is the software GPU's, which is used with --software-gpu alone");
  return found;
}

Result<std::vector<Gpu>> select_devices(std::vector<Gpu> devices, const std::vector<DeviceSelector>& selectors) {
  if (selectors.empty()) return devices;
  std::vector<Gpu> selected;
  for (const DeviceSelector& selector : selectors) {
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const Gpu& gpu) {
      return selector.uuid.empty() ? gpu.index == selector.index : same_uuid(gpu.uuid, selector.uuid);
    });
    if (found == devices.end()) return fail(selector.where + ": device: no such GPU in this machine");
    const bool twice =
        std::any_of(selected.begin(), selected.end(), [&](const Gpu& gpu) { return gpu.index == found->index; });
    if (twice) return fail(selector.where + ": device: selected twice");
    selected.push_back(*found);
  }
  return selected;
}

bool same_uuid(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view uuid) {
    if (uuid.substr(0, 4) == "GPU-") uuid.remove_prefix(4);
    std::string result;
    for (char c : uuid)
      if (c != '-') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  };
  return digits(a) == digits(b);
}

}  // namespace gpuctl::daemon

// The setting `devices` of a slice as people write it: "0,GPU-1b2c".
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parts.h"
#include "base/per_gpu.h"

namespace gpuctl {

/// The text of the setting that names none: all that slices above have.
inline constexpr std::string_view kAllDevices = "all";

/// What such a value must look like, for errors.
inline constexpr std::string_view kDevicesForm = "all, or a list that names each GPU once such as 0,2 or GPU-1b2c";

/// Names of GPUs, as is_gpu_name() wants them; none: all. Empty unless the text is kDevicesForm.
inline std::optional<std::vector<std::string>> parse_devices(std::string_view text) {
  std::vector<std::string> devices;
  if (text == kAllDevices) return devices;
  const bool sound = each_part(text, [&](std::string_view part) {
    if (!is_gpu_name(part) || std::ranges::find(devices, part) != devices.end() || devices.size() == kMostPerGpu)
      return false;
    devices.emplace_back(part);
    return true;
  });
  return sound ? std::optional(std::move(devices)) : std::nullopt;
}

/// As parse_devices reads it.
inline std::string devices_text(std::span<const std::string> devices) {
  std::string text;
  for (const std::string& name : devices) text.append(text.empty() ? "" : ",").append(name);
  return text.empty() ? std::string(kAllDevices) : text;
}

}  // namespace gpuctl

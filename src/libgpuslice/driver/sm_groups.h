// The groups of SMs of which a part of a GPU (a green context) consists.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// SMs of a group: eight, or an eighth of a GPU of fewer than 64 SMs, in pairs. A GPU may have larger ones still.
constexpr std::uint32_t group_sms(std::uint32_t device_sms) {
  return std::clamp(device_sms / 16 * 2, 2u, 8u);
}

/// The SMs of a part that takes no more than `sms`: whole groups. `sms` itself where it is the whole device or less
/// than a group. A program is told of that many, as some kernels have one block for each SM that there is: on fewer
/// they take twice as long.
constexpr std::uint32_t in_whole_groups(std::uint32_t sms, std::uint32_t device_sms) {
  const std::uint32_t group = group_sms(device_sms);
  return sms >= device_sms || sms < group ? sms : sms - sms % group;
}

}  // namespace gpuslice

// The reserve mode `lend`, which is no more. Files that have it are read for one release as what took its place.
#pragma once

#include <string_view>

#include "base/slice_settings.h"

namespace gpuctl {

inline constexpr std::string_view kFormerReserveMode = "lend";
inline constexpr std::string_view kFormerReserveModeSays =
    "lend is no more; active with a reserve_hold of 1 ms took its place";

/// Whether it is that value of reserve_mode.
inline bool is_former_mode(const SliceSetting& setting, std::string_view value) {
  return setting.text == &SliceSettings::reserve_mode && value == kFormerReserveMode;
}

/// Replaces it by what took its place. False: the settings do not have it.
inline bool replace_former_mode(SliceSettings& settings) {
  if (settings.reserve_mode != kFormerReserveMode) return false;
  settings.reserve_mode = kReserveModes[1];
  settings.reserve_hold_ms = 1;
  return true;
}

}  // namespace gpuctl

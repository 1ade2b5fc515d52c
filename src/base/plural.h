// Amounts in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuctl {

/// "1 slice", "12400 slices"
inline std::string plural(std::int64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

}  // namespace gpuctl

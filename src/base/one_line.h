// What other people's strings become before they are shown.
#pragma once

#include <algorithm>
#include <string>

namespace gpuctl {

/// The text without control characters, which are replaced, so that it stays one line.
inline std::string one_line(std::string text, char instead = ' ') {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, instead);
  return text;
}

}  // namespace gpuctl

// Makes strings of other programs fit to be shown.
#pragma once

#include <algorithm>
#include <string>

namespace gpuctl {

/// The text as one line: `instead` replaces control characters.
inline std::string one_line(std::string text, char instead = ' ') {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, instead);
  return text;
}

}  // namespace gpuctl

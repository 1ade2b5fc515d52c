// Makes strings of other programs fit to be shown.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace gpuctl {

/// The text as one line that controls no terminal: `instead` stands for each character that would (base/utf8.h), and
/// for each byte that belongs to none.
inline std::string one_line(std::string_view text, char instead = ' ') {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || controls_terminal(character))
      line += instead;
    else
      line += character;
    text.remove_prefix(character.size());
  }
  return line;
}

}  // namespace gpuctl

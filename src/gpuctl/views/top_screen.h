// The lines of `top`: devices, the slice tree, the clients. Pure: the same samples give the same text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

struct ScreenStyle {
  std::size_t width = 0;   ///< columns; 0: no limit (plain text)
  std::size_t height = 0;  ///< lines; 0: no limit
  bool color = false;      ///< ANSI colours and bold
  bool utf8 = false;       ///< bars of block characters instead of ASCII
  std::string note = {};   ///< in the first line, in place of the summary
};

/// At most style.height lines, each at most style.width columns wide. `before` may be null.
std::vector<std::string> render_top(const ipc::Snapshot* before, const ipc::Snapshot& now, const ScreenStyle& style);

}  // namespace gpuctl::cli

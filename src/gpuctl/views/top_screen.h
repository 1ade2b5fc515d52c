// The lines of `top`: devices, the slice tree, the programs. Pure: the same samples give the same text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpuctl/views/top_view.h"
#include "ipc/types.h"

namespace gpuctl::cli {

struct ScreenStyle {
  std::size_t width = 0;   ///< columns; 0: no limit (plain text)
  std::size_t height = 0;  ///< lines; 0: no limit
  bool color = false;      ///< ANSI colours and bold
  bool utf8 = false;       ///< bars of block characters instead of ASCII
};

/// At most style.height lines, each at most style.width columns wide. `before` may be null. What `view` says of a
/// choice holds for a terminal alone (style.width).
std::vector<std::string> render_top(const ipc::Snapshot* before, const ipc::Snapshot& now, const ScreenStyle& style,
                                    const TopView& view = {});

}  // namespace gpuctl::cli

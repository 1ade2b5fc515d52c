// Lists as people write them, with commas.
#pragma once

#include <string_view>

namespace gpuctl {

/// Calls `visit` with each part of the list, empty ones too, until it returns false. Whether it never did.
template <class Visit>
bool each_part(std::string_view list, Visit visit) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (!visit(list.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace gpuctl

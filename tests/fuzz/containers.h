// What holds of the entries found in any image, whole or damaged.
#pragma once

#include <vector>

#include "fuzz.h"
#include "ptx/container/fatbin.h"

namespace gpuctl::fuzz {

/// Unpacks the PTX of all entries, and picks one for some devices.
inline void require_sound(const Result<std::vector<ptx::FatbinEntry>>& entries, ptx::Bytes image) {
  if (!entries) return require_line(entries.error().message);
  for (const ptx::FatbinEntry& entry : *entries) {
    require(entry.payload.empty() || (entry.payload.data() >= image.data() &&
                                      entry.payload.data() + entry.payload.size() <= image.data() + image.size()),
            "a payload lies in its image");
    const Result<std::string> text = ptx::ptx_text(entry);
    if (!text) {
      require_line(text.error().message);
    } else {
      require(text->find('\0') == text->npos, "unpacked PTX ends before its first NUL");
    }
  }
  for (const std::uint32_t sm : {75u, 90u, 100u, 101u, 121u}) {
    const Result<std::size_t> chosen = ptx::choose_ptx(*entries, sm);
    if (!chosen) {
      require_line(chosen.error().message);
    } else {
      require(*chosen < entries->size() && (*entries)[*chosen].kind == ptx::FatbinKind::kPtx, "a PTX entry is chosen");
    }
  }
}

}  // namespace gpuctl::fuzz

// Rewritten text is kept from one run of a program to the next, because rewriting an image of hundreds of kernels takes
// seconds: under the hash of the PTX and of the rewriter itself, so a rewriter that was changed never finds old text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libgpuslice/cache_directory.h"
#include "libgpuslice/image.h"

namespace gpuslice {

/// What the rewriter makes of a PTX text.
struct Rewritten {
  std::string text;                  ///< empty: no kernel has a persistent form
  std::vector<ImageKernel> kernels;
  bool stands_alone = false;         ///< gpuctl::ptx::stands_alone() of the PTX
  std::string reason;                ///< why nothing could be rewritten, nor any kernel be listed; one line
};

/// Rewrites, or finds what was made of this text before. Any thread.
Rewritten rewrite_once(std::string_view text, const CacheDirectory& cache);

/// As bytes, and back; nothing if they were not made by pack().
std::string pack(const Rewritten& rewritten);
std::optional<Rewritten> unpack(std::string_view bytes);

}  // namespace gpuslice

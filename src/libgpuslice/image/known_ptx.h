// The PTX of machine code whose compilation libgpuslice saw. Front ends that compile to a cubin themselves (NVRTC's
// users, Triton with its ptxas) have the PTX for a moment and give the driver only the cubin. The cubin's content
// identifies its PTX. The PTX is kept in the user's cache directory, because front ends keep their cubins too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libgpuslice/image/cache_directory.h"
#include "ptx/container/bytes.h"

namespace gpuslice {

struct KnownPtx {
  std::string text;
  int max_registers = 0;  ///< register limit that the cubin was compiled with; 0: none
};

/// The cubin that begins at `image`, as the driver sees it when it gets only an address. Nothing if there is none. If
/// `size` is known, the cubin must lie within these bytes. Otherwise a whole cubin is assumed to be there, as the
/// driver assumes.
std::optional<std::string_view> cubin_at(const void* image, std::optional<std::size_t> size);

/// Notes the PTX that `cubin` (from cubin_at()) was made of. Without a directory, it is noted for this process only.
/// Any thread.
void remember_ptx(std::string_view cubin, const KnownPtx& ptx, const CacheDirectory& cache);

/// The PTX of a cubin; nothing if it is unknown. Any thread.
std::optional<KnownPtx> find_known_ptx(std::string_view cubin, const CacheDirectory& cache);

}  // namespace gpuslice

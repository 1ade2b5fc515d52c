// The PTX of machine code that was compiled before our eyes. Front ends that compile to a cubin themselves (NVRTC's
// users, Triton with its ptxas) have the PTX at hand for a moment and hand only the cubin to the driver. What connects
// the two is the content of the cubin; it is kept in the user's cache directory, because front ends keep their cubins
// too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libgpuslice/cache/cache_directory.h"
#include "ptx/bytes.h"

namespace gpuslice {

struct KnownPtx {
  std::string text;
  int max_registers = 0;  ///< the cubin was compiled with this limit; 0 = none
};

/// The cubin that begins at `image`, as the driver sees it of which only the address is given; nothing if it is none.
/// Of `size` bytes, where that is known, it must lie within. Else a whole cubin is trusted to lie there, as the driver
/// does.
std::optional<std::string_view> cubin_at(const void* image, std::optional<std::size_t> size);

/// Notes the PTX that `cubin`, as cubin_at() gives it, was made of. Without a directory, for this process alone. Any
/// thread.
void remember_ptx(std::string_view cubin, const KnownPtx& ptx, const CacheDirectory& cache);

/// The PTX of a cubin; nothing if it is not known. Any thread.
std::optional<KnownPtx> find_ptx(std::string_view cubin, const CacheDirectory& cache);

}  // namespace gpuslice

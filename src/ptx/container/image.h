// What programs pass to the driver as "an image": PTX text, a cubin (ELF), fatbin containers, or the wrapper through
// which nvcc's host code points to a container. Also whole executables and object files, read from disk.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/container/fatbin.h"

namespace gpuctl::ptx {

inline constexpr std::uint32_t kFatbinWrapperMagic = 0x466243B1;

/// The compiled forms in a complete image of known size. PTX text gives one raw PTX entry with the architecture of its
/// .target; a cubin one ELF entry; an executable or object file all entries of its fatbin sections (.nv_fatbin,
/// __nv_relfatbin). The entries point into `image`. Errors name the offset and field.
Result<std::vector<FatbinEntry>> read_image(Bytes image);

/// Whether this PTX has variables in managed memory (`__managed__`), or looks so.
bool has_managed_variables(std::string_view ptx);

/// Whether this machine code has; false where it is compressed, as nothing is unpacked to find out.
bool has_managed_variables(const FatbinEntry& code);

/// Whether `file` is a fatbin, a cubin, or an ELF file with fatbins.
bool has_device_code(Bytes file);

/// The extent of an image in this process's memory, of which only the address is known, as for cuModuleLoadData.
/// Follows a fatbin wrapper to its container. Trusts the caller, as the driver does, that a whole image is there, and
/// reads no more of it than it needs to find its end.
Result<Bytes> image_in_memory(const void* image);

}  // namespace gpuctl::ptx

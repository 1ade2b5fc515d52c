// Hides the entries that libgpuslice added to an image from the program's counts and lists.
#pragma once

#include "libgpuslice/modules/loaded_image.h"

namespace gpuslice {

/// How many entries were added to the image.
unsigned added_entries(const LoadedImage& image);

/// Writes up to `wanted` of the image's own entries to `out`, as the driver's function of the container does. The
/// handle leads to the image: its own, or that of the CUmodule that its library has in a context.
CUresult enumerate_own(void** out, unsigned wanted, const LoadedImage& image, const Container& container, void* handle);

}  // namespace gpuslice

// The linker (cuLink*): turns one PTX text into an image that is loaded without being compiled again.
#pragma once

#include <string>
#include <string_view>

namespace gpuctl::softgpu {

/// The object behind a CUlinkState.
struct Linker {
  std::string text;   ///< PTX; empty: none was given
  std::string image;  ///< the linked image; lives as long as the linker
};

/// A fatbin with the text and an empty entry of machine code for this device: an image loaded from it counts as
/// compiled (load_image()).
std::string compiled_image(std::string_view text);

/// Returns when compiling is over, as SOFTGPU_COMPILE_UNTIL says. The caller holds a CompilerUse (device/exit.h).
void take_time_to_compile();

}  // namespace gpuctl::softgpu

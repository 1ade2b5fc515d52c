// The linker (cuLink*): of one PTX text it makes what is loaded without being compiled again.
#pragma once

#include <string>
#include <string_view>

namespace gpuctl::softgpu {

/// What is behind a CUlinkState.
struct Linker {
  std::string text;   ///< PTX; empty: none was given
  std::string image;  ///< what was made of it, for as long as the program keeps the linker
};

/// A fatbin with the text and, beside it, an empty entry of machine code for this device: what is loaded from it counts
/// as compiled (load_image()).
std::string compiled_image(std::string_view text);

/// Takes as long as SOFTGPU_COMPILE_UNTIL says that compiling lasts. For those who hold a CompilerUse (device/exit.h).
void take_time_to_compile();

}  // namespace gpuctl::softgpu

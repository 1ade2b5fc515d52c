// Whole images, as `gpuctl rewrite` reads them: ELF files with fatbin sections, cubins, fatbins, PTX.
#include "ptx/container/image.h"
#include "containers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gpuctl::ptx::Bytes image = std::as_bytes(std::span(data, size));
  gpuctl::fuzz::require_sound(gpuctl::ptx::read_image(image), image);
  return 0;
}

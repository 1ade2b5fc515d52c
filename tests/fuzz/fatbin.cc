// Fatbin containers: cut off, with sizes that lie, with payloads that do not unpack.
#include "containers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gpuctl::ptx::Bytes image = std::as_bytes(std::span(data, size));
  gpuctl::fuzz::require_sound(gpuctl::ptx::read_fatbin(image), image);
  return 0;
}

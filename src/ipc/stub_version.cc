// A source of its own, so that a test can build the library with another version in its place.
#include "ipc/stub_map.h"

namespace gpuctl::ipc {

std::uint32_t stub_version() noexcept {
  return kStubVersion;
}

}  // namespace gpuctl::ipc

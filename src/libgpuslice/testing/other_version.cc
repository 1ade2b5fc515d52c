// libgpuslice as it will be with the next version of the stub page, for tests of an upgrade.
#include "ipc/stub_map.h"

namespace gpuctl::ipc {

std::uint32_t stub_version() noexcept {
  return kStubVersion + 1;
}

}  // namespace gpuctl::ipc

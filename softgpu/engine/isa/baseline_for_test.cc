// Linked into a test instead of cpu.cc: runs the handlers of the machine's baseline on any CPU.
#include "softgpu/engine/isa/select.h"

namespace gpuctl::softgpu::engine {

Handler select_handler(const Selector& selector) {
  return isa_base::select(selector);
}

}  // namespace gpuctl::softgpu::engine

#include "libgpuslice/base/watching_tool.h"

#include <dlfcn.h>

#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/base/environment.h"

namespace gpuslice {

bool tool_watches() {
  static const bool watches = [] {
    for (const char* variable : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"})
      if (const char* path = environment(variable); path && *path) return true;
    return real_dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2") != nullptr;
  }();
  return watches;
}

}  // namespace gpuslice

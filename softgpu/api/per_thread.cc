#include "softgpu/api/per_thread.h"

#include "softgpu/contexts/zero_stream.h"

extern "C" {

#define SOFTGPU_DEFINE(name, suffix, parameters, arguments) \
  CUresult name##suffix parameters {                        \
    const gpuctl::softgpu::PerThreadScope scope;            \
    return name arguments;                                  \
  }
SOFTGPU_PER_THREAD_FUNCTIONS(SOFTGPU_DEFINE)
#undef SOFTGPU_DEFINE

}  // extern "C"

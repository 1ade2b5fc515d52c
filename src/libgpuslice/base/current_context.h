// The context that is current in this thread, and that of a stream.
#pragma once

#include <cuda.h>

#include "libgpuslice/base/driver.h"

namespace gpuslice {

/// Null: there is none, or no driver.
inline CUcontext current_context() {
  CUcontext context = nullptr;
  const auto ask = driver().cuCtxGetCurrent;
  return ask && ask(&context) == CUDA_SUCCESS ? context : nullptr;
}

/// Of the current context; -1: there is none.
inline CUdevice device_of_current() {
  CUdevice device = -1;
  const auto ask = driver().cuCtxGetDevice;
  return ask && ask(&device) == CUDA_SUCCESS ? device : -1;
}

/// Whether the code of a function is known to be loaded in the current context.
inline bool is_loaded(CUfunction function) {
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  const auto ask = driver().cuFuncIsLoaded;
  return ask && ask(&state, function) == CUDA_SUCCESS && state == CU_FUNCTION_LOADING_STATE_LOADED;
}

inline bool is_default(CUstream stream) {
  return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/// The handles of default streams mean those of the current context.
inline CUcontext context_of(CUstream stream) {
  CUcontext context = nullptr;
  const auto ask = driver().cuStreamGetCtx;
  return !is_default(stream) && ask && ask(stream, &context) == CUDA_SUCCESS ? context : current_context();
}

/// Makes a context current for its lifetime.
class InContext {
 public:
  explicit InContext(CUcontext context) {
    if (driver().cuCtxGetCurrent(&before_) != CUDA_SUCCESS || before_ == context) return;
    changed_ = driver().cuCtxSetCurrent(context) == CUDA_SUCCESS;
  }
  ~InContext() {
    if (changed_) driver().cuCtxSetCurrent(before_);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

}  // namespace gpuslice

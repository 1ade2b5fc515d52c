// Tools that look at the kernels of the program from inside it: profilers, sanitizers.
#pragma once

namespace gpuslice {

/// Whether such a tool was put into the program when it was started. It goes by what NVIDIA documents for tools: one is
/// named by CUDA_INJECTION64_PATH or NVTX_INJECTION64_PATH, or it was preloaded and has the function by which NVTX
/// finds it. The first call looks; the answer stays. Any thread.
bool tool_watches();

}  // namespace gpuslice

#include "libgpuslice/image/program_parameters.h"

#include <mutex>

#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/image/launch_params.h"

namespace gpuslice {

namespace {

template <class Handle>
using ParamInfo = CUresult (*)(Handle, std::size_t, std::size_t*, std::size_t*);

template <class Handle>
std::vector<Parameter> ask_layout_of(Handle handle, const char* name) {
  std::vector<Parameter> layout;
  std::size_t offset = 0, bytes = 0;
  const auto ask = reinterpret_cast<ParamInfo<Handle>>(libcuda_function(name));
  while (ask && ask(handle, layout.size(), &offset, &bytes) == CUDA_SUCCESS)
    layout.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
  return layout;
}

std::vector<Parameter> ask_layout_of(CUfunction function) {
  std::vector<Parameter> layout = ask_layout_of(function, "cuFuncGetParamInfo");
  return layout.empty() ? ask_layout_of(reinterpret_cast<CUkernel>(function), "cuKernelGetParamInfo") : layout;
}

}  // namespace

std::vector<std::byte> program_parameters(KernelInfo& kernel, CUfunction function, void** params, void** extra) {
  std::lock_guard lock(kernel.mutex);  // a background form may be described now
  if (kernel.params.empty() && !kernel.asked_layout) kernel.asked_layout = ask_layout_of(function);
  const std::vector<Parameter>& layout = kernel.params.empty() ? *kernel.asked_layout : kernel.params;
  std::vector<std::byte> block;
  if (layout.empty()) return block;
  if (!pack(layout, layout.back().offset + layout.back().size, params, extra, block)) block.clear();
  return block;
}

}  // namespace gpuslice

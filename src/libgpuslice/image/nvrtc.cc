#include "libgpuslice/image/nvrtc.h"

#include "libgpuslice/base/debug.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/image/compile_options.h"
#include "libgpuslice/image/known_ptx.h"

namespace gpuslice {

int Nvrtc::compile_noted(Program program, int count, const char* const* options) {
  const int result = compile(program, count, options);
  if (result != kSuccess || !Client::get().wanted()) return result;
  try {
    const std::optional<int> limit =
        nvrtc_register_limit({options, options && count > 0 ? static_cast<std::size_t>(count) : 0});
    std::lock_guard lock(mutex);
    register_limits[program] = limit;
  } catch (...) {  // then its PTX is not noted
  }
  return result;
}

int Nvrtc::get_cubin_noted(Program program, char* cubin) {
  const int result = get_cubin(program, cubin);
  if (result != kSuccess || !cubin || !Client::get().wanted()) return result;
  try {
    KnownPtx ptx;
    {
      std::lock_guard lock(mutex);
      const auto compiled = register_limits.find(program);
      if (compiled == register_limits.end() || !compiled->second) return result;
      ptx.max_registers = *compiled->second;
    }
    std::size_t cubin_size = 0, ptx_size = 0;
    if (get_cubin_size(program, &cubin_size) != kSuccess || get_ptx_size(program, &ptx_size) != kSuccess ||
        ptx_size <= 1)
      return result;
    const std::optional<std::string_view> bytes = cubin_at(cubin, cubin_size);
    ptx.text.resize(ptx_size);
    if (!bytes || get_ptx(program, ptx.text.data()) != kSuccess) return result;
    ptx.text.pop_back();  // NVRTC counts the NUL at the end
    remember_ptx(*bytes, ptx, CacheDirectory::of_user());
    debug("NVRTC made %zu bytes of machine code from %zu bytes of PTX", cubin_size, ptx_size);
  } catch (...) {  // out of memory: the PTX is not noted
  }
  return result;
}

}  // namespace gpuslice

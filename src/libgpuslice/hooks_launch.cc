// Launches: the parameters are packed and the persistent form is tried; whatever cannot take it goes to the driver as
// it came.
#include <algorithm>
#include <cstring>

#include "libgpuslice/capture.h"
#include "libgpuslice/client.h"
#include "libgpuslice/context.h"
#include "libgpuslice/driver.h"
#include "libgpuslice/hooks.h"
#include "libgpuslice/kernels.h"
#include "libgpuslice/opaque.h"
#include "libgpuslice/quiet.h"

namespace gpuslice {

namespace {

/// The parameter block of the persistent form with the program's values in place. False: the call does not carry
/// what the kernel declares (the driver will say so).
bool pack(const KernelInfo& kernel, void** params, void** extra, std::vector<std::byte>& block) {
  block.resize(kernel.args_offset + sizeof(gpuctl::ptx::LaunchArgs));
  if (kernel.params.empty()) return true;
  if (params) {
    for (std::size_t i = 0; i < kernel.params.size(); ++i) {
      if (!params[i]) return false;
      std::memcpy(block.data() + kernel.params[i].offset, params[i], kernel.params[i].size);
    }
    return true;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1]) size = *static_cast<const std::size_t*>(extra[i + 1]);
  }
  const Parameter& last = kernel.params.back();
  if (!buffer || size < last.offset + last.size) return false;
  std::memcpy(block.data(), buffer, last.offset + last.size);
  return true;
}

/// Attributes under which the persistent form means the same as the original; `keep` those that it should carry.
bool take_attributes(const CUlaunchAttribute* attributes, unsigned count, std::vector<CUlaunchAttribute>& keep) {
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i].id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        break;  // a permission to start early, which is not used
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        keep.push_back(attributes[i]);
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (attributes[i].value.cooperative) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

/// A function's first launch may load its code, which blocks until the device is idle.
void load_before_first_launch(KernelInfo* kernel, CUfunction function) {
  if (!kernel || kernel->launches.load(std::memory_order_relaxed) > 0 || !driver().cuFuncLoad) return;
  CUfunction loadable = function;
  if (kernel->is_library_kernel && driver().cuKernelGetFunction(&loadable, reinterpret_cast<CUkernel>(function)) != CUDA_SUCCESS) return;
  Quiet quiet;
  driver().cuFuncLoad(loadable);
  int registers = 0;
  driver().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, loadable);
  kernel->registers_original = registers;
}

/// False: not launched, `result` untouched.
bool launch_managed(KernelInfo* kernel, LaunchConfig&& config, const CUlaunchAttribute* attributes, unsigned count, void** params,
                    void** extra, CUresult* result) {
  if (!kernel || !kernel->persistent || !config.threads()) return false;
  if (kernel->needs_whole_warps && (config.block[0] % 32 != 0 || std::uint64_t{config.grid[0]} * config.block[0] >> 31 != 0)) return false;
  if (!take_attributes(attributes, count, config.attributes) || capturing(config.stream)) return false;
  Context* context = Context::current();
  Instance* instance = context ? context->instance_of(*kernel) : nullptr;
  std::vector<std::byte> block;
  if (!instance || !pack(*kernel, params, extra, block)) return false;
  return context->launch(*instance, std::move(config), std::move(block), result);
}

bool is_cooperative(const CUlaunchAttribute* attributes, unsigned count) {
  return std::any_of(attributes, attributes + count, [](const CUlaunchAttribute& attribute) {
    return attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute.value.cooperative != 0;
  });
}

/// A kernel without another form, when and where its slice may start it.
template <class Plain>
CUresult launch_opaque(CUstream stream, std::uint64_t blocks, Plain plain) {
  Context* context = capturing_anything() ? nullptr : Context::current();
  if (!context) return plain(stream);
  const Opaque::Turn turn(context->opaque(), stream, blocks);
  const CUresult result = plain(turn.stream());
  return result != CUDA_SUCCESS && turn.confined() ? plain(stream) : result;
}

/// `plain(stream)` is the driver's call.
template <class Plain>
CUresult launch(CUfunction function, LaunchConfig&& config, const CUlaunchAttribute* attributes, unsigned count, void** params,
                void** extra, Plain plain) {
  const CUstream stream = config.stream;
  if (!Client::get().wanted()) return plain(stream);
  return guarded([&] {
    KernelInfo* kernel = Kernels::get().find(function);
    if (!capturing(stream)) load_before_first_launch(kernel, function);
    if (kernel) {
      kernel->launches.fetch_add(1, std::memory_order_relaxed);
      kernel->changed.store(true, std::memory_order_relaxed);
    }
    const std::uint64_t blocks = config.block_tasks();
    CUresult result = CUDA_SUCCESS;
    if (launch_managed(kernel, std::move(config), attributes, count, params, extra, &result)) return result;
    if ((kernel && kernel->persistent) || is_cooperative(attributes, count)) return plain(stream);
    return launch_opaque(stream, blocks, plain);
  });
}

CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                       CUstream stream, void** params, void** extra) {
  if (!driver().cuLaunchKernel) return CUDA_ERROR_NOT_INITIALIZED;
  return launch(f, {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared, .stream = stream}, nullptr, 0, params, extra,
                [&](CUstream where) { return driver().cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, where, params, extra); });
}

CUresult launch_kernel_ex(const CUlaunchConfig* config, CUfunction f, void** params, void** extra, bool per_thread) {
  if (!driver().cuLaunchKernelEx) return CUDA_ERROR_NOT_INITIALIZED;
  if (!config) return driver().cuLaunchKernelEx(config, f, params, extra);
  CUlaunchConfig c = *config;
  c.hStream = explicit_stream(c.hStream, per_thread);
  return launch(f,
                {.grid = {c.gridDimX, c.gridDimY, c.gridDimZ},
                 .block = {c.blockDimX, c.blockDimY, c.blockDimZ},
                 .shared = c.sharedMemBytes,
                 .stream = c.hStream},
                c.attrs, c.numAttrs, params, extra, [&](CUstream where) {
                  c.hStream = where;
                  return driver().cuLaunchKernelEx(&c, f, params, extra);
                });
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared, CUstream stream, void** params, void** extra) {
  return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, explicit_stream(stream, false), params, extra);
}
GPUSLICE_HOOK cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                  unsigned shared, CUstream stream, void** params, void** extra) {
  return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, explicit_stream(stream, true), params, extra);
}
GPUSLICE_HOOK cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  return launch_kernel_ex(config, f, params, extra, false);
}
GPUSLICE_HOOK cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  return launch_kernel_ex(config, f, params, extra, true);
}

// For the rest of the library, a kernel written by hand is a kernel in persistent form whose LaunchArgs come first. It
// is kept apart from what the hooks know of the same handle: a launch that does not come through here is one of an
// ordinary kernel.
//
// With LaunchArgs of zeros it runs like an ordinary kernel, one block-task per block. So a launch that
// Context::launch() leaves to the caller is made that way, with the program's own grid.
#include "libgpuslice/api/by_hand.h"

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/capture.h"
#include "libgpuslice/driver/dlsym.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/kernels/kernels.h"
#include "libgpuslice/kernels/launch_params.h"
#include "libgpuslice/launch/issue.h"
#include "libgpuslice/launch/opaque_launch.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/stream_priority.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

namespace {

using gpuctl::ptx::DeviceSlot;
using gpuctl::ptx::HostSlot;
using gpuctl::ptx::LaunchArgs;

// Kernels that are already compiled depend on these. A change of them must increase GPUSLICE_DEVICE_ABI.
static_assert(GPUSLICE_DEVICE_ABI == 6);
static_assert(sizeof(LaunchArgs) == 120 && offsetof(LaunchArgs, slot) == 0 && offsetof(LaunchArgs, total) == 24 &&
              offsetof(LaunchArgs, chunk) == 44 && offsetof(LaunchArgs, order) == 96 &&
              offsetof(LaunchArgs, by_per_sm) == 112);
static_assert(sizeof(DeviceSlot) == 512 && offsetof(DeviceSlot, left) == 144 && offsetof(DeviceSlot, here) == 256);
static_assert(sizeof(HostSlot) == 64 && offsetof(HostSlot, left) == 16 && offsetof(HostSlot, start_ns) == 32);

/// A kernel's parameters: LaunchArgs at 0, then the program's.
struct Layout {
  std::vector<Parameter> params;  ///< after LaunchArgs
  std::size_t bytes = sizeof(LaunchArgs);
};

/// A kernel, from its first launch until its image is unloaded.
struct ByHand {
  std::weak_ptr<KernelInfo> image_kernel;  ///< what the hooks know of the handle
  Layout layout;
  std::shared_ptr<KernelInfo> kernel;
};

/// By handle. Never destroyed, since programs launch in destructors too.
struct ByHandRegistry {
  std::mutex mutex;
  std::unordered_map<CUfunction, std::shared_ptr<ByHand>> kernels;
};

ByHandRegistry& by_hand_registry() {
  static auto* all = new ByHandRegistry;
  return *all;
}

/// Nothing, with `error` set, if the driver cannot describe the kernel or its first parameter is no LaunchArgs.
std::optional<Layout> ask_layout(CUfunction function, int* error) {
  using GetParamInfo = decltype(&cuFuncGetParamInfo);
  static const auto get_info = reinterpret_cast<GetParamInfo>(libcuda_function("cuFuncGetParamInfo"));
  *error = driver().present ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED;
  if (!get_info) return std::nullopt;
  std::size_t offset = 0, bytes = 0;
  const CUresult result = get_info(function, 0, &offset, &bytes);
  *error =
      result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE ? static_cast<int>(GPUSLICE_ERROR_INVALID) : result;
  if (result != CUDA_SUCCESS || offset != 0 || bytes != sizeof(LaunchArgs)) return std::nullopt;
  *error = 0;
  Layout layout;
  while (get_info(function, layout.params.size() + 1, &offset, &bytes) == CUDA_SUCCESS) {
    layout.params.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
    layout.bytes = offset + bytes;
  }
  return layout;
}

/// What is known of the kernel; the first launch makes it. Null, without an error, if the hooks have not seen its image
/// because that was loaded before this program joined a slice.
std::shared_ptr<ByHand> find(CUfunction function, int* error) {
  const std::shared_ptr<KernelInfo> image_kernel = Kernels::get().find_shared(function);
  if (!image_kernel) return nullptr;
  ByHandRegistry& all = by_hand_registry();
  std::lock_guard lock(all.mutex);
  const auto known = all.kernels.find(function);
  if (known != all.kernels.end() && known->second->image_kernel.lock() == image_kernel) return known->second;

  // Handles are reused for other kernels, so kernels of unloaded images are removed first.
  std::vector<std::shared_ptr<KernelInfo>> gone;
  for (const auto& [handle, kernel] : all.kernels) {
    if (kernel->image_kernel.expired()) gone.push_back(kernel->kernel);
  }
  if (!gone.empty()) Kernels::get().remove(gone);
  std::erase_if(all.kernels, [](const auto& entry) { return entry.second->image_kernel.expired(); });

  std::optional<Layout> layout = ask_layout(function, error);
  if (!layout) return nullptr;
  auto made = std::make_shared<ByHand>();
  made->image_kernel = image_kernel;
  made->layout = std::move(*layout);
  made->kernel = std::make_shared<KernelInfo>();
  made->kernel->name = image_kernel->name;
  made->kernel->module = image_kernel->module;
  made->kernel->persistent = true;
  made->kernel->persistent_function = function;
  made->kernel->reason = "written preemptible by hand";
  made->kernel->args_offset = 0;
  Kernels::get().add(made->kernel.get(), made->kernel);  // under a handle of its own, only for reports
  all.kernels[function] = made;
  return made;
}

/// Launches an ordinary kernel: the LaunchArgs in `block` are zero.
CUresult launch_plain(CUfunction function, const LaunchConfig& config, CUstream stream, std::vector<std::byte>& block) {
  std::size_t size = block.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return driver().cuLaunchKernel(function, config.grid[0], config.grid[1], config.grid[2], config.block[0],
                                 config.block[1], config.block[2], config.shared, stream, nullptr, extra);
}

}  // namespace

int launch_by_hand(CUfunction function, const gpuslice_launch_config& given, void** params) {
  LaunchConfig config{.grid = {given.grid[0], given.grid[1], given.grid[2]},
                      .block = {given.block[0], given.block[1], given.block[2]},
                      .shared = given.shared_bytes,
                      .stream = explicit_stream(static_cast<CUstream>(given.stream), false)};
  int error = 0;
  const bool managed = Client::get().wanted() && driver().present && config.threads() > 0 && !capturing(config.stream);
  const std::shared_ptr<ByHand> known = managed ? find(function, &error) : nullptr;
  if (error != 0) return error;
  std::optional<Layout> asked;
  if (!known && !(asked = ask_layout(function, &error))) return error;
  const Layout& layout = known ? known->layout : *asked;
  std::vector<std::byte> block;
  if (!pack(layout.params, layout.bytes, params, nullptr, block)) return GPUSLICE_ERROR_INVALID;
  if (!known) {
    const StreamCall call(config.stream);
    return launch_plain(function, config, config.stream, block);
  }

  if (const auto priority = StreamPriorities::get().before_launch(config.stream))
    config.attributes = with_priority(nullptr, 0, *priority);
  KernelInfo& kernel = *known->kernel;
  kernel.count_launch();
  Context* context = Contexts::current();
  Instance* instance = context ? context->instance_of(kernel) : nullptr;
  kernel.registers_original = kernel.registers.load();
  CUresult result = CUDA_SUCCESS;
  const char* why = nullptr;
  // launch() takes the block only if it launches, so it gets copies.
  const Context::Outcome outcome =
      instance ? context->launch(*instance, LaunchConfig(config), std::vector<std::byte>(block), &result, &why)
               : Context::Outcome::kCannot;
  if (outcome == Context::Outcome::kLaunched) return result;
  const bool is_short = outcome == Context::Outcome::kOriginalForm;
  if (context && !is_short) context->count_original_launch();
  result = launch_opaque(context, &kernel, config.stream,
                         {.blocks = config.block_tasks(),
                          .confine = !is_short,
                          .name = kernel.name.c_str(),
                          .kernel = &kernel,
                          .threads = config.threads(),
                          .shared = config.shared,
                          .input_bytes = context ? input_bytes(context->view(), block) : 0},
                         [&](CUstream where) { return launch_plain(function, config, where, block); });
  if (result != CUDA_SUCCESS && instance) {
    // The program may now allow the kernel more shared memory, so the driver is asked again how many blocks fit on an
    // SM.
    std::lock_guard lock(kernel.mutex);
    instance->occupancy.fill({});
  }
  return result;
}

}  // namespace gpuslice

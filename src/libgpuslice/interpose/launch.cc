// Launches, as the driver is asked for them: what goes as it came, and else in which form and where it goes
// (launch/choose_form.h).
#include "libgpuslice/agent/activity.h"
#include "libgpuslice/agent/bursts.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/agent/hold.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/base/memory_reserve.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/image/co_residency.h"
#include "libgpuslice/image/kernels.h"
#include "libgpuslice/image/launch_params.h"
#include "libgpuslice/image/whole_grid.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/launch/choose_form.h"
#include "libgpuslice/launch/opaque_launch.h"
#include "libgpuslice/launch/repeated.h"
#include "libgpuslice/modules/first_launch.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/opaque.h"
#include "libgpuslice/streams/stream_priority.h"

namespace gpuslice {

namespace {

/// Whether the launch may go to the driver as it came. Nothing is in force, its stream has its priority, and nothing
/// has to join or to end before it; if so, it counts. What this does not know, launch() finds out. It touches a cache
/// line for each of its words, the grant, the kernel, and what counts (docs/design/launch-cost.md).
[[gnu::always_inline]] inline bool goes_as_it_came_to(std::uint32_t device, CUfunction function, CUstream stream,
                                                      std::uint64_t blocks) {
  const LaunchWords& words = g_launch_words;
  const gpuctl::ipc::Stub* page = words.page.load(std::memory_order_acquire);
  if (!page || words.captures.load(std::memory_order_relaxed) > 0 || !words.nothing_open() ||
      words.memory_ran_out.load(std::memory_order_relaxed))
    return false;
  const gpuctl::ipc::Grant& grant = page->grant[device];
  const std::uint32_t flags = gpuctl::ipc::load(grant.flags);
  if (!gpuctl::ipc::starts_freely(flags) || !Activity::leaves_time_slices(grant) ||
      !StreamPriorities::follows(stream, flags))
    return false;
  const RecentKernel* known = Kernels::find_recent(function);
  if (!known) return false;
  if (KernelInfo* kernel = known->kernel) kernel->count_free_launch();
  Activity& activity = Activity::get();
  activity.launched(static_cast<int>(device), blocks);
  if (!activity.burst(static_cast<int>(device)).knows(stream)) [[unlikely]]
    issued(static_cast<int>(device), stream);
  return true;
}

[[gnu::noinline]] bool goes_as_it_came_to_current(CUfunction function, CUstream stream, std::uint64_t blocks) {
  CUdevice device = -1;
  const auto ask = driver().cuCtxGetDevice;
  if (!ask || ask(&device) != CUDA_SUCCESS || device < 0) return false;
  const auto index = static_cast<std::uint32_t>(device);
  return index < gpuctl::ipc::kMaxDevices && goes_as_it_came_to(index, function, stream, blocks);
}

[[gnu::always_inline]] inline bool goes_as_it_came(CUfunction function, CUstream stream, std::uint64_t blocks) {
  if (g_launch_words.one_device.load(std::memory_order_relaxed)) [[likely]]
    return goes_as_it_came_to(0, function, stream, blocks);
  return goes_as_it_came_to_current(function, stream, blocks);
}

/// Makes a kernel known that the program did not look up by name (cuFFT launches such kernels), from what the driver
/// reports of it.
KernelInfo* find_unknown(CUfunction function) {
  const char* name = nullptr;
  const Driver& d = driver();
  const bool is_function = d.cuFuncGetName && d.cuFuncGetName(&name, function) == CUDA_SUCCESS;
  const bool is_kernel = !is_function && d.cuKernelGetName &&
                         d.cuKernelGetName(&name, reinterpret_cast<CUkernel>(function)) == CUDA_SUCCESS;
  if ((!is_function && !is_kernel) || !name) return nullptr;
  auto kernel = std::make_shared<KernelInfo>();
  kernel->name = name;
  kernel->module = "image";
  kernel->reason = "the program did not ask for it by its name";
  kernel->is_library_kernel = is_kernel;
  note_by_name(*kernel);
  Kernels::get().add(function, kernel);
  return Kernels::get().find(function);
}

/// `plain(stream, priority)` makes the driver's call, with that priority if there is one.
template <class Plain>
[[gnu::noinline]] CUresult launch(CUfunction function, LaunchConfig&& config, const CUlaunchAttribute* attributes,
                                  unsigned count, void** params, void** extra, Plain plain) {
  const CUstream stream = config.stream;
  if (!Client::get().wanted()) return plain(stream, std::nullopt);
  return nothrow([&] {
    StreamPriorities& priorities = StreamPriorities::get();
    std::optional<int> priority = asked_priority(attributes, count);
    if (priority) priority = priorities.for_new(*priority);
    const std::uint64_t blocks = config.block_tasks();
    // the graph is handled when it is instantiated (graph_exec.h)
    if (capturing(stream)) return plain(stream, priority);
    if (!priority) priority = priorities.before_launch(stream);
    const auto original = [&](CUstream where) { return plain(where, priority); };
    if (memory_ran_out()) {
      const StreamCall in_flight(stream);
      return original(stream);
    }
    if (const int device = Activity::free_device(); device >= 0) {
      if (KernelInfo* kernel = Kernels::get().find(function)) kernel->count_free_launch();
      Activity::get().launched(device, blocks);
      const StreamCall in_flight(stream);
      return original(stream);
    }
    Context* context = Contexts::current();
    KernelInfo* kernel = Kernels::get().find(function);
    if (!kernel) kernel = find_unknown(function);
    if (kernel && kernel->background && !kernel->persistent) kernel->background->load_if_idle();
    load_before_first_launch(kernel, function);
    if (kernel) kernel->count_launch();
    const Form form =
        choose_form(context, kernel, {function, std::move(config), attributes, count, priority, params, extra});
    return form.result ? *form.result : launch_opaque(context, kernel, stream, form.original, original);
  });
}

/// Launches what any of the API's forms describes. `plain(stream)` makes that form's own call in the stream.
template <class Plain>
CUresult launch_configured(CUlaunchConfig config, CUfunction f, void** params, void** extra, Plain plain) {
  LaunchConfig wanted{.grid = {config.gridDimX, config.gridDimY, config.gridDimZ},
                      .block = {config.blockDimX, config.blockDimY, config.blockDimZ},
                      .shared = config.sharedMemBytes,
                      .stream = config.hStream};
  return launch(f, std::move(wanted), config.attrs, config.numAttrs, params, extra,
                [&](CUstream where, std::optional<int> priority) {
                  if (!priority || !driver().cuLaunchKernelEx) return plain(where);
                  std::vector<CUlaunchAttribute> all = with_priority(config.attrs, config.numAttrs, *priority);
                  CUlaunchConfig with = config;
                  with.hStream = where;
                  with.attrs = all.data();
                  with.numAttrs = static_cast<unsigned>(all.size());
                  return driver().cuLaunchKernelEx(&with, f, params, extra);
                });
}

/// The driver's function, which is loaded by the time that a launch goes as it came.
template <class Function>
Function as_it_came(const std::atomic<Function>& function) {
  return function.load(std::memory_order_relaxed);
}

/// Launches as an earlier launch, by call(stream). False: it may not, or the driver refused it there.
template <class Call>
bool repeat(CUfunction function, CUstream stream, std::uint64_t blocks, std::uint64_t threads, std::uint32_t shared,
            Call call) {
  bool launched = false;
  nothrow(
      [&] {
        RepeatedLaunches::Turn turn(function, stream, {blocks, static_cast<std::uint32_t>(threads), shared});
        if (turn && call(turn.stream()) == CUDA_SUCCESS) {
          launched = true;
          turn.launched();
        }
        return true;
      },
      true);
  return launched;
}

[[gnu::noinline]] CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                         unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
  const auto plain = driver().cuLaunchKernel;
  if (!plain) return CUDA_ERROR_NOT_INITIALIZED;
  note_work(stream);
  wait_if_held(stream);
  const auto in_stream = [&](CUstream where) { return plain(f, gx, gy, gz, bx, by, bz, shared, where, params, extra); };
  if (repeat(f, stream, std::uint64_t{gx} * gy * gz, std::uint64_t{bx} * by * bz, shared, in_stream))
    return CUDA_SUCCESS;
  return launch_configured({gx, gy, gz, bx, by, bz, shared, stream, nullptr, 0}, f, params, extra, in_stream);
}

CUresult launch_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared, CUstream stream, void** params) {
  if (!driver().cuLaunchCooperativeKernel) return CUDA_ERROR_NOT_INITIALIZED;
  note_work(stream);
  wait_if_held(stream);
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  return launch_configured(
      {gx, gy, gz, bx, by, bz, shared, stream, &cooperative, 1}, f, params, nullptr, [&](CUstream where) {
        return driver().cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, where, params);
      });
}

[[gnu::noinline]] CUresult launch_kernel_ex(const CUlaunchConfig* config, CUfunction f, void** params, void** extra,
                                            bool per_thread) {
  const auto plain = driver().cuLaunchKernelEx;
  if (!plain) return CUDA_ERROR_NOT_INITIALIZED;
  if (!config) return plain(config, f, params, extra);
  CUlaunchConfig c = *config;
  c.hStream = explicit_stream(c.hStream, per_thread);
  note_work(c.hStream);
  wait_if_held(c.hStream);
  const auto in_stream = [&](CUstream where) {
    CUlaunchConfig there = c;
    there.hStream = where;
    return plain(&there, f, params, extra);
  };
  const std::uint64_t blocks = std::uint64_t{c.gridDimX} * c.gridDimY * c.gridDimZ;
  if (!asked_priority(c.attrs, c.numAttrs) && !co_residency_of(c.attrs, c.numAttrs, blocks) &&
      repeat(f, c.hStream, blocks, std::uint64_t{c.blockDimX} * c.blockDimY * c.blockDimZ, c.sharedMemBytes, in_stream))
    return CUDA_SUCCESS;
  return launch_configured(c, f, params, extra, in_stream);
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared, CUstream stream, void** params, void** extra) {
  stream = explicit_stream(stream, false);
  if (goes_as_it_came(f, stream, std::uint64_t{gx} * gy * gz)) [[likely]]
    return as_it_came(g_launch_words.launch)(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
GPUSLICE_HOOK cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                  unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
  stream = explicit_stream(stream, true);
  if (goes_as_it_came(f, stream, std::uint64_t{gx} * gy * gz)) [[likely]]
    return as_it_came(g_launch_words.launch)(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
GPUSLICE_HOOK cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  const auto plain = as_it_came(g_launch_words.launch_ex);
  if (config && plain && !asked_priority(config->attrs, config->numAttrs) &&
      goes_as_it_came(f, explicit_stream(config->hStream, false),
                      std::uint64_t{config->gridDimX} * config->gridDimY * config->gridDimZ)) [[likely]]
    return plain(config, f, params, extra);
  return launch_kernel_ex(config, f, params, extra, false);
}
GPUSLICE_HOOK cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  return launch_kernel_ex(config, f, params, extra, true);
}
GPUSLICE_HOOK cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                        unsigned bz, unsigned shared, CUstream stream, void** params) {
  return launch_cooperative(f, gx, gy, gz, bx, by, bz, shared, explicit_stream(stream, false), params);
}
GPUSLICE_HOOK cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                             unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                             void** params) {
  return launch_cooperative(f, gx, gy, gz, bx, by, bz, shared, explicit_stream(stream, true), params);
}

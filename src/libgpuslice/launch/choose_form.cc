#include "libgpuslice/launch/choose_form.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/told_sms.h"
#include "libgpuslice/image/co_residency.h"
#include "libgpuslice/image/launch_params.h"
#include "libgpuslice/image/own_cluster.h"
#include "libgpuslice/image/program_parameters.h"
#include "libgpuslice/image/whole_grid.h"
#include "libgpuslice/launch/issue.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

constexpr char kConfined[] = "while no SM has to be given back";
constexpr char kShort[] = "because it is short";

/// The driver refuses larger grids, but would accept the grid of a persistent form. The limits are the same on every
/// architecture.
bool fits_grid_limits(const LaunchConfig& config) {
  return config.grid[0] <= 0x7fffffff && config.grid[1] <= 65535 && config.grid[2] <= 65535;
}

/// Whether the launch may have another form than the original: whether SMs may have to be given back in its middle.
bool may_have_to_give_back(Context& context, CUstream stream, const Opaque::Launch& original) {
  switch (context.view().mode()) {
    case ipc::Mode::part:
    case ipc::Mode::common:
      return !context.opaque().confines(stream, original);
    case ipc::Mode::free:  // since a moment ago
    case ipc::Mode::lent:
    case ipc::Mode::workers:
    case ipc::Mode::turns:
      return true;
  }
  return true;
}

/// Launches a kernel that has a persistent form. `why`, `result`: as for Context::launch(). `original`: the launch in
/// its original form.
Context::Outcome launch_as_workers(Context& context, KernelInfo& kernel, AskedLaunch& asked,
                                   const Opaque::Launch& original, CUresult* result, const char** why) {
  LaunchConfig& config = asked.config;
  if (!config.threads() || !fits_grid_limits(config)) return Context::Outcome::kCannot;
  if (!may_have_to_give_back(context, config.stream, original)) {
    *why = kConfined;
    return Context::Outcome::kCannot;
  }
  if (!fits_whole_warps(kernel, config.grid, config.block)) return Context::Outcome::kCannot;
  if (asked.priority)
    config.attributes =
        with_priority(config.attributes.data(), static_cast<unsigned>(config.attributes.size()), *asked.priority);
  Instance* instance = context.instance_of(kernel);
  std::vector<std::byte> block;
  if (!instance || !pack(kernel, asked.params, asked.extra, block)) return Context::Outcome::kCannot;
  return context.launch(*instance, std::move(config), std::move(block), result, why);
}

/// The fewest SMs on which blocks that wait for each other can run.
std::uint32_t least_sms(const CoResidency& co_residency, CUfunction function, std::uint32_t threads,
                        std::uint32_t shared) {
  int per_sm = 0;
  const auto ask = driver().cuOccupancyMaxActiveBlocksPerMultiprocessor;
  if (!co_residency) return 0;
  if (!ask || ask(&per_sm, function, static_cast<int>(threads), shared) != CUDA_SUCCESS || per_sm < 0) per_sm = 0;
  return sms_for(co_residency, static_cast<std::uint64_t>(per_sm));
}

/// The fewest SMs for a launch that does not say that its blocks wait for each other.
std::uint32_t least_for_whole_grid(const Context& context, KernelInfo* kernel, WholeGrid grid) {
  const GrantView& view = context.view();
  if (!blocks_may_wait(kernel)) return 0;
  grid.sms = view.sms();
  grid.told = ToldSms::get().told(view.device_index(), view.sms());
  // Each SM has room for one block at least. Where that is enough the driver need not be asked.
  return grid.blocks <= view.part().count ? static_cast<std::uint32_t>(grid.blocks) : least_sms_of(kernel, grid);
}

/// Why a kernel with a persistent form was launched in its original form, as the text that follows
/// "launched" in `gpuctl explain`.
const char* why_original(const CoResidency& co_residency, bool takes_attributes, const char* said) {
  if (co_residency) return co_residency.how;
  if (!takes_attributes) return "with attributes its other form cannot have";
  return said ? said : "with blocks its other form cannot have";
}

}  // namespace

Form choose_form(Context* context, KernelInfo* kernel, AskedLaunch&& asked) {
  const std::uint64_t blocks = asked.config.block_tasks();
  const std::uint32_t threads = asked.config.threads(), shared = asked.config.shared;
  Form form{.result = {},
            .original = {.blocks = blocks,
                         .name = kernel ? kernel->name.c_str() : "a kernel",
                         .kernel = kernel,
                         .threads = threads,
                         .shared = shared,
                         .decided = context ? context->view().version() : GrantView::Version{}}};
  Opaque::Launch& original = form.original;
  const bool taken = take_attributes(asked.attributes, asked.count, asked.config.attributes);
  const bool has_form = kernel && kernel->persistent;
  Context::Outcome outcome = Context::Outcome::kCannot;
  const char* why = nullptr;
  CUresult result = CUDA_SUCCESS;
  if (taken && has_form && context) outcome = launch_as_workers(*context, *kernel, asked, original, &result, &why);
  if (outcome == Context::Outcome::kLaunched) {
    kernel->note_rewritten();
    form.result = result;
    return form;
  }
  if (context && kernel && context->view().jobs() != ipc::kNoJobs)
    original.input_bytes =
        input_bytes(context->view(), program_parameters(*kernel, asked.function, asked.params, asked.extra));
  if (outcome == Context::Outcome::kOriginalForm) {
    kernel->note_original(kShort);
    original.confine = false;
    return form;
  }
  const CoResidency co_residency = co_residency_of(asked.attributes, asked.count, blocks);
  if (kernel)
    kernel->note_original(has_form ? why_original(co_residency, taken, why) : nullptr, co_residency || !taken || !why);
  original.least = co_residency ? least_sms(co_residency, asked.function, threads, shared)
                   : context    ? least_for_whole_grid(*context, kernel, {asked.function, blocks, threads, shared})
                                : 0;
  if (kernel && kernel->stuck) original.confine = false;
  original.cluster = co_residency.cluster;
  // One with another form has none of its own.
  if (kernel && !has_form && context && context->opaque().by_pairs())
    original.cluster = std::max<std::uint64_t>(original.cluster, own_cluster(*kernel, asked.function));
  if (context) context->count_original_launch();
  return form;
}

}  // namespace gpuslice

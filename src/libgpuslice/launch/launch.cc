// The launch path: everything between the program's launch call and the driver's. It makes no system call while the
// agent is awake and no policy for jobs is in force. It makes one set of allocations per launch.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/hardware_queues.h"
#include "libgpuslice/launch/chunks.h"
#include "libgpuslice/launch/context.h"
#include "libgpuslice/launch/issue.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/own_streams.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

/// A kernel that runs in original form because it is short runs in persistent form, and is measured, once in this many
/// launches.
constexpr std::uint32_t kMeasureEvery = 1000;
constexpr double kShortInReserveNs = 1'000'000;
constexpr double kTargetsWhenAlone = 4;
constexpr char kBehindWaiting[] = "behind launches that may wait for the program";

}  // namespace

// Cost rule. A kernel that takes less than the latency target on the whole GPU need not be evicted while it runs, so it
// runs in original form. The limit is higher in two cases. While this client is alone on the GPU, another client that
// arrives needs time to begin. And a kernel whose blocks all fit on the SMs that its slice has in reserve need only end
// soon enough for an administrator who changes the reserve.
bool Context::short_enough(Instance& instance, std::uint64_t tasks, std::uint32_t per_sm) {
  if (instance.task_ns == 0) return false;
  const std::uint64_t capacity = std::uint64_t{view().sms()} * per_sm;
  const bool reserved = tasks <= std::uint64_t{view().reserve()} * per_sm;
  double most = std::chrono::nanoseconds(state_.targets.latency).count();
  if (view().alone()) most *= kTargetsWhenAlone;
  if (reserved) most = std::max(most, kShortInReserveNs);
  if (static_cast<double>((tasks + capacity - 1) / capacity) * instance.task_ns >= most) return false;
  if (++instance.skipped >= kMeasureEvery) {
    instance.skipped = 0;
    return false;
  }
  count_original_launch();
  return true;
}

// Sets everything but the number of workers.
void Context::plan(Launch& launch, const Stream& stream) {
  const LaunchConfig& config = launch.config;
  const std::uint64_t full = std::uint64_t{view().sms()} * launch.per_sm;
  const std::array<std::uint32_t, 3> grid = {config.grid[0], config.grid[1], config.grid[2]};
  const Chunks chunks = plan_chunks(grid, launch.instance->task_ns, full,
                                    static_cast<double>(std::chrono::nanoseconds(state_.targets.block_task).count()) *
                                        (view().alone() ? kTargetsWhenAlone : 1),
                                    fixed_chunk());
  launch.chunk = chunks.most;
  launch.args = lay_out(grid, chunks);
  launch.args.slot = state_.book.slots().device_address(launch.slot);
  launch.args.host = state_.book.slots().host_address(launch.slot);
  launch.args.polled = state_.limits.polled_address();
  launch.args.limit = stream.limit;
  launch.args.range = state_.limits.allowed(stream);
}

// As many workers as the allowed SMs hold, and more for the idle SMs that are not allowed, twice as many as fit there:
// the hardware fills the emptiest SMs first, and workers leave those at once. If no SM is allowed, one worker is still
// launched: the holder, which keeps the launch's place in its stream.
std::uint32_t Context::workers_for(const Launch& launch, std::uint32_t allowed) const {
  if (allowed == 0) return 1;
  const std::uint64_t sms = allowed;
  const std::uint64_t chunks = (std::uint64_t{launch.args.total} + launch.chunk - 1) / launch.chunk;
  const std::uint64_t wanted = std::min(chunks, sms * launch.per_sm);
  return static_cast<std::uint32_t>((wanted * (sms + 2 * view().idle_sms()) + sms - 1) / sms);
}

/// Does everything but the call to the driver.
void Context::add_to_book(Stream& stream, std::unique_ptr<Launch> owned, std::uint32_t slot) {
  Launch& launch = *owned;
  launch.slot = slot;
  launch.issued_ns = monotonic_ns();
  const bool first = stream.outstanding.empty();
  if (first) state_.limits.choose(stream);
  state_.book.add(stream, std::move(owned));
  plan(launch, stream);
  if (first) {
    state_.limits.divide();
  }
  if (first) {
    state_.usage.publish();
    // The daemon takes SMs from who had no demand, and looks at the demand once more: one of the two sees the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    launch.args.range = state_.limits.allowed(stream);
  }
  if (state_.book.outstanding() == 1 && view().jobs() != ipc::kNoJobs) state_.agent.note_work_begins();
  const std::uint32_t allowed = gpuctl::range_size(launch.args.range);
  set_workers(launch.args, workers_for(launch, allowed), allowed == view().sms());
  launch.launched = launch.args.workers;
  std::memcpy(launch.params.data() + launch.instance->kernel->args_offset, &launch.args, sizeof launch.args);
}

/// Why a launch into this stream must be in original form, as the text that follows "launched" in `gpuctl explain`;
/// null: it need not. A stream whose kernel is evicted holds up its hardware queue, and so do streams that wait for
/// that stream. If all queues were held up, no worker could reach the GPU any more. `workers_get_on`: as
/// may_use_own_streams() says.
const char* Context::why_crowded(const Stream& stream, bool workers_get_on) const {
  if (!workers_get_on) return "while a stream of the program waits for a value";
  if (state_.crowded()) return "while the program's streams hold up each other";
  if (!stream.outstanding.empty() || state_.book.active().size() < std::max(1u, hardware_queues() / 2)) return nullptr;
  return "beside kernels in other streams of the program";
}

Context::Outcome Context::launch(Instance& instance, LaunchConfig&& config, std::vector<std::byte>&& params,
                                 CUresult* result, const char** why) {
  const Fit fit = fit_of(instance, config);
  if (fit.per_sm <= 0) return Outcome::kCannot;

  const bool workers_get_on = may_use_own_streams(kQueuesForWorkers);
  Stream* stream;
  {
    std::unique_lock lock(state_.book.mutex());
    if (short_enough(instance, config.block_tasks(), static_cast<std::uint32_t>(fit.per_sm)))
      return Outcome::kOriginalForm;
    stream = &state_.book.stream_of(config.stream);
    if ((*why = why_crowded(*stream, workers_get_on))) return Outcome::kCannot;
  }
  auto owned = std::make_unique<Launch>();
  Launch& launch = *owned;
  launch.instance = &instance;
  launch.function = fit.function;
  launch.config = std::move(config);
  launch.params = std::move(params);
  launch.per_sm = static_cast<std::uint32_t>(fit.per_sm);
  launch.input_bytes = input_bytes(view(), launch.params);

  const StreamCall in_flight(stream->handle);
  std::lock_guard pair(stream->issue);
  {
    std::unique_lock lock(state_.book.mutex());
    std::optional<std::uint32_t> slot;
    if (!wait_for_launches(lock, stream, [&] { return (slot = state_.book.take_slot(*stream)).has_value(); })) {
      *why = kBehindWaiting;
      return Outcome::kCannot;
    }
    add_to_book(*stream, std::move(owned), *slot);
  }
  state_.agent.rouse();

  // The launch belongs to the agent, which deletes it when `issued` is set and all workers have left.
  *result = issue(launch, stream->handle, launch.args.workers, launch.params);
  if (*result != CUDA_SUCCESS) {
    debug("launch of %s refused: %d", instance.kernel->name.c_str(), *result);
    launch.failed = true;
    state_.note_result(*result);
  }
  launch.issued.store(true, std::memory_order_release);
  return Outcome::kLaunched;
}

}  // namespace gpuslice

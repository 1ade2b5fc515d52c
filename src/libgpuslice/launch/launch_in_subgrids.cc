// Launches in sliced form (ptx/subgrid_abi.h): kernel slicing, as FLEP (Figure 17) and EffiSha (Figure 11) compare
// with. Each subgrid is a launch in original form to the rest of the library: it waits for a grant, and it is confined
// if a part of the GPU is granted (opaque.h).
//
// A subgrid cannot be evicted, so few of them may be on the GPU (subgrid_size.h). The program's own thread launches
// them. A thread of ours could do so behind a stream wait, but under MPS a stopped stream holds up the hardware queue
// of others (docs/design/claim-loop.md). The price is that the program's thread is not ahead of the GPU.
#include <chrono>
#include <cstring>
#include <thread>

#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/launch/context.h"
#include "libgpuslice/launch/issue.h"
#include "libgpuslice/streams/waiting_streams.h"
#include "ptx/subgrid_abi.h"

namespace gpuslice {

namespace {

using namespace std::chrono_literals;

/// If subgrids take longer, something may wait for the program after all. Then the others are launched at once.
constexpr std::chrono::seconds kLongestWait{1};
/// A thread that waits for longer than this sleeps, since a thread that sleeps may be 100 us late.
constexpr double kSleepFromNs = 1'000'000;

gpuctl::ptx::SubgridArgs args_of(const LaunchConfig& config) {
  return {.first = 0,
          .grid_x = config.grid[0],
          .grid_y = config.grid[1],
          .grid_z = config.grid[2],
          .by_grid_x = gpuctl::ptx::divisor(config.grid[0]),
          .by_grid_y = gpuctl::ptx::divisor(config.grid[1])};
}

/// Why this launch must be in original form, as the text that follows "launched" in `gpuctl explain`; null: it need
/// not. A thread that waits for what its own stream does must not be what the stream waits for.
const char* why_whole(double target_ns) {
  if (target_ns == 0) return "since kernels have no subgrids any more";
  if (capturing_anything()) return "while a stream was being captured";
  if (!WaitingStreams::get().none()) return "while a stream may wait for the program";
  return nullptr;
}

}  // namespace

/// Launches the subgrids of one kernel one after the other.
class Context::SubgridSeries {
 public:
  SubgridSeries(Context& context, Instance& instance, const LaunchConfig& config, std::vector<std::byte>& params,
                const Opaque::Launch& original, Fit fit, double target_ns)
      : context_(context),
        instance_(instance),
        config_(config),
        params_(params),
        original_(original),
        fit_(fit),
        target_ns_(target_ns),
        queue_(context.state_.subgrids.queue_of(config.stream)) {
    original_.series_ns = monotonic_ns();
  }

  /// Returns the driver's answer to the first launch that it refused. `begun`: whether any was launched.
  CUresult run(bool& begun) {
    const Opaque::Series alone(context_.opaque(), config_.stream);
    const bool tells = context_.view().jobs() != gpuctl::ipc::kNoJobs && original_.kernel != nullptr;
    if (tells) queue_->begin_series(original_.job(original_.series_ns));
    const CUresult result = launch_all(begun);
    if (tells) queue_->end_series(result == CUDA_SUCCESS);
    return result;
  }

 private:
  CUresult launch_all(bool& begun) {
    const RelaxedCapture relaxed;  // another thread may have begun a capture
    gpuctl::ptx::SubgridArgs args = args_of(config_);
    const std::uint64_t total = config_.block_tasks();
    unsigned subgrids = 0;
    for (std::uint64_t first = 0; first < total; ++subgrids) {
      wait_for_room();
      args.first = static_cast<std::uint32_t>(first);
      std::memcpy(params_.data() + instance_.kernel->args_offset, &args, sizeof args);
      if (const CUresult result = launch_next(total, first); result != CUDA_SUCCESS) return result;
      begun = true;
    }
    debug("%s: %llu blocks in %u subgrids", instance_.kernel->name.c_str(), static_cast<unsigned long long>(total),
          subgrids);
    return CUDA_SUCCESS;
  }

  void wait_for_room() {
    const auto until = std::chrono::steady_clock::now() + kLongestWait;
    while (true) {
      while (const auto ended = queue_->take_ended()) note(*ended);
      if (gave_up_ || context_.ended() || queue_->has_room(target_ns_)) return;
      gave_up_ = std::chrono::steady_clock::now() >= until;
      if (std::max(target_ns_, task_ns_) >= kSleepFromNs)
        std::this_thread::sleep_for(100us);
      else
        std::this_thread::yield();
    }
  }

  void note(const SubgridQueue::Ended& ended) {
    if (ended.number < first_number_ || ended.wave_ns <= 0) return;
    const std::lock_guard lock(context_.state_.book.mutex());
    double& task_ns = instance_.task_ns;
    task_ns = task_ns == 0 ? ended.wave_ns : 0.75 * task_ns + 0.25 * ended.wave_ns;
    instance_.kernel->task_ns = static_cast<std::uint32_t>(task_ns);
  }

  /// Moves `first` behind the subgrid.
  CUresult launch_next(std::uint64_t total, std::uint64_t& first) {
    Opaque::Turn turn(context_.opaque(), config_.stream, original_);
    const std::uint32_t sms = turn.confined() ? turn.sms() : context_.view().sms();
    const std::uint64_t wave = std::uint64_t{sms} * static_cast<std::uint64_t>(fit_.per_sm);
    {
      const std::lock_guard lock(context_.state_.book.mutex());
      task_ns_ = instance_.task_ns;
    }
    const auto blocks = static_cast<std::uint32_t>(subgrid_blocks(total - first, wave, task_ns_, target_ns_));
    const auto plain = [&](CUstream stream) {
      queue_->begin(stream, first == 0);
      return launch_grid(fit_.function, blocks, config_, config_.shared, stream, params_);
    };
    CUresult result = plain(turn.stream());
    if (result != CUDA_SUCCESS && turn.confined()) result = plain(turn.anywhere("it does not run on those granted"));
    if (result != CUDA_SUCCESS) {
      turn.give_up();
      return result;
    }
    const double waves = subgrid_waves(blocks, wave);
    const std::uint64_t number = context_.state_.subgrids.next_number();
    if (first_number_ == 0) first_number_ = number;
    const std::uint64_t fill = (blocks + fit_.per_sm - 1) / static_cast<std::uint64_t>(fit_.per_sm);
    queue_->launched(turn.stream(), {.number = number,
                                     .waves = waves,
                                     .expected_ns = task_ns_ > 0 ? waves * task_ns_ : target_ns_,
                                     .sms = static_cast<std::uint32_t>(std::min<std::uint64_t>(fill, sms)),
                                     .confined = turn.confined() ? turn.sms() : 0});
    first += blocks;
    return CUDA_SUCCESS;
  }

  Context& context_;
  Instance& instance_;
  const LaunchConfig& config_;
  std::vector<std::byte>& params_;
  Opaque::Launch original_;
  const Fit fit_;
  const double target_ns_;
  const std::shared_ptr<SubgridQueue> queue_;
  std::uint64_t first_number_ = 0;
  double task_ns_ = 0;  ///< Instance::task_ns at the latest launch
  bool gave_up_ = false;
};

Context::Outcome Context::launch_in_subgrids(Instance& instance, LaunchConfig&& config, std::vector<std::byte>&& params,
                                             const Opaque::Launch& original, CUresult* result, const char** why) {
  const Fit fit = fit_of(instance, config);
  if (fit.per_sm <= 0) return Outcome::kCannot;
  const double target_ns = 1000.0 * static_cast<double>(Client::get().subgrid_time().count());
  if ((*why = why_whole(target_ns))) return Outcome::kCannot;
  {
    std::unique_lock lock(state_.book.mutex());
    if (short_enough(instance, config.block_tasks(), static_cast<std::uint32_t>(fit.per_sm)))
      return Outcome::kOriginalForm;
  }
  bool begun = false;
  *result = SubgridSeries(*this, instance, config, params, original, fit, target_ns).run(begun);
  if (*result != CUDA_SUCCESS) {
    debug("a subgrid of %s was refused: %d", instance.kernel->name.c_str(), *result);
    if (!begun) return Outcome::kCannot;  // the driver may take it in original form, or says why not
    state_.note_result(*result);
  }
  count_original_launch();
  return Outcome::kLaunched;
}

}  // namespace gpuslice

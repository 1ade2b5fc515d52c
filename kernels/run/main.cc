#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "kernels/run/options.h"
#include "kernels/run/report.h"
#include "kernels/timing/calibrate.h"

namespace gpuctl::bench {
namespace {

constexpr int kFailedStatus = 1;
constexpr int kWrongResultStatus = 3;

/// timeout(1) sends its signal twice, to its child and to the group.
constexpr std::int64_t kSameRequestNs = 300'000'000;

std::atomic<bool> stop_requested = false;
std::atomic<std::int64_t> requested_ns = 0;  // CLOCK_MONOTONIC
// Set by a signal handler.
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

/// A second request ends the program, which may be waiting for the GPU.
void request_stop(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  std::int64_t first_ns = 0;
  stop_requested = true;
  if (requested_ns.compare_exchange_strong(first_ns, now_ns) || now_ns - first_ns < kSameRequestNs) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void stop_on(int signal) {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

int run_kernel(const Options& options) {
  const Gpu gpu;
  Extent extent = options.extent();
  const bool calibrated = options.targets.task_us || options.targets.kernel_us;
  if (calibrated && options.kernel->tunable) {
    extent = calibrate(gpu, *options.kernel, extent, options.targets);
  }
  Workbench bench(*options.kernel, extent, options.run.seed, outputs_needed(options.run),
                  options.run.check != Check::kNone);
  std::uint32_t repeats = options.repeat;
  if (repeats > 1) bench.repeat(repeats);
  if (calibrated && !options.kernel->tunable) repeats = calibrate_repeats(bench, *options.targets.kernel_us);
  const RunResult result = run(bench, options.run, stop_requested);
  const Report report{gpu, *options.kernel, extent, repeats, bench.problem(), options.run, result};
  if (options.json) {
    print_json(report, stdout);
  } else {
    print_table(report, stdout);
  }
  if (!options.samples.empty()) write_samples(result, options.run.hints.has_value(), options.samples);
  return result.mismatches == 0 ? 0 : kWrongResultStatus;
}

}  // namespace
}  // namespace gpuctl::bench

int main(int argc, char** argv) {
  using namespace gpuctl::bench;
  const Parsed parsed = parse_options(argc, argv);
  if (!parsed.options) return parsed.status;
  if (parsed.options->verb == Options::Verb::kList) {
    print_kernels(kernel_table(), parsed.options->json, stdout);
    return 0;
  }
  stop_on(SIGINT);
  stop_on(SIGTERM);
  try {
    return run_kernel(*parsed.options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpuslice-bench: %s\n", error.what());
    return kFailedStatus;
  }
}

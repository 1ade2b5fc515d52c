#include <atomic>
#include <csignal>
#include <cstdio>

#include "kernels/run/options.h"
#include "kernels/run/report.h"
#include "kernels/timing/calibrate.h"

namespace gpuctl::bench {
namespace {

constexpr int kFailedStatus = 1;
constexpr int kWrongResultStatus = 3;

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // set by a signal handler

void request_stop(int) {
  stop_requested = true;
}

void stop_on(int signal) {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);  // the second ends it while it waits for the GPU
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

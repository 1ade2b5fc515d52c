// Issues launches of one kernel by an arrival pattern, keeps a number of them in flight, and times and checks each. The
// launch of a problem of several steps is that of all its steps, back to back in one stream.
//
// One thread does everything. A launch goes through: output poisoned - issued - complete - output checked; outputs that
// nobody checks are not poisoned. Poisoning
// and checking lie outside the measured latency (issue to completion): with one launch in flight they happen between
// launches; with more, while other launches keep the GPU busy, into one spare output.
// Launches are waited for in the order of issue, so with several streams a launch that overtakes an earlier one is
// noticed late.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/run/gpu.h"
#include "kernels/run/start.h"
#include "kernels/run/workbench.h"
#include "kernels/timing/arrival.h"

namespace gpuctl::bench {

/// kAll: every launch is checked, on the CPU. kDevice: every launch is, by comparing on the GPU, and one more after the
/// measured ones on the CPU. kLast: one more launch after the measured ones is. kNone: none is.
enum class Check { kAll, kDevice, kLast, kNone };

struct RunOptions {
  std::uint64_t count = 0;  ///< launches; 0: no limit
  double seconds = 0;       ///< time in which launches are issued; 0: no limit
  Arrival arrival = Arrival::kBackToBack;
  double period_us = 1000;
  std::uint32_t burst = 1;  ///< launches of a burst
  std::uint32_t depth = 1;  ///< launches in flight, per stream
  std::uint32_t streams = 1;
  Check check = Check::kAll;
  Priority priority = Priority::kNone;
  /// Before each launch, libgpuslice is given a priority hint that is drawn from these, the least and the greatest.
  std::optional<std::pair<int, int>> hints;
  bool gpu_time = true;      ///< bracket each launch with two timed events
  std::uint32_t warmup = 2;  ///< launches before the measured ones
  Start start;               ///< of the measured launches
  bool announce = false;     ///< write "started" to stderr when the measured launches begin
  std::uint64_t seed = 1;
};

struct Sample {
  std::int64_t due_ns;     ///< when it should have been issued; back to back: when it was
  std::int64_t issue_ns;   ///< before the launch call
  std::int64_t issued_ns;  ///< after the launch call
  std::int64_t complete_ns;
  double gpu_us;  ///< between the events around it, 0 without gpu_time
  int hint = 0;   ///< its priority hint, 0 without hints
};

struct RunResult {
  std::vector<Sample> samples;
  std::int64_t start_ns = 0;  ///< of the measured launches
  std::int64_t end_ns = 0;    ///< last completion
  std::uint64_t checked = 0;  ///< warm-up included
  std::uint64_t mismatches = 0;
  std::string first_mismatch;
  std::uint64_t output_hash = 0;  ///< of the last checked launch, 0 when none was
};

/// Outputs the workbench must have for these options.
std::size_t outputs_needed(const RunOptions& options);

/// Runs until count, seconds, or `stop` turns true. Throws Failure when the driver reports an error.
RunResult run(Workbench& bench, const RunOptions& options, const std::atomic<bool>& stop);

}  // namespace gpuctl::bench

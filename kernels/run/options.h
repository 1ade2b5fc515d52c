// The command line of gpuslice-bench.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/run/kernel_table.h"
#include "kernels/run/runner.h"
#include "kernels/timing/calibrate.h"

namespace gpuctl::bench {

struct Options {
  enum class Verb { kList, kRun };
  Verb verb = Verb::kList;
  const KernelSpec* kernel = nullptr;
  Size size = Size::kTrivial;
  std::vector<std::uint32_t> given_extent;  ///< empty: by size
  std::optional<std::uint32_t> blocks;
  std::optional<std::uint32_t> iterations;
  std::uint32_t repeat = 1;  ///< how often a launch does its blocks
  Targets targets;
  RunOptions run;
  bool json = false;
  std::string samples;  ///< file for one line per launch; empty: none

  /// The extent asked for, before any calibration.
  Extent extent() const;
};

/// The options, or the exit status when the program is to end now (help printed: 0; wrong usage, said on stderr: 2).
struct Parsed {
  std::optional<Options> options;
  int status = 0;
};
Parsed parse_options(int argc, char** argv);

}  // namespace gpuctl::bench

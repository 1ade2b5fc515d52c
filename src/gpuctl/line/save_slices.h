// Writes slices of the daemon beside its configuration, so that they are there after the next boot.
#pragma once

#include <string>
#include <vector>

#include "gpuctl/line/verb.h"
#include "gpuctl/text/failure.h"

namespace gpuctl::cli {

/// What was written, and what was removed because its slice is gone.
struct SavedSlices {
  std::vector<std::string> written, removed;
};

/// The slice `path` and those above it; "": all slices but those of Slurm's jobs. `config`: the gpuctl.toml whose
/// drop-ins are written, which must be the one that the daemon reads; "": the one that is installed.
Outcome<SavedSlices> save_slices(const Context& context, const std::string& path, const std::string& config);

/// An error if the daemon would not read what is so saved.
Outcome<void> reads_saved(const Context& context, const std::string& config);

}  // namespace gpuctl::cli

// What survives the daemon: the slices, in STATE/state.json. Clients reattach by themselves.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpuctld/config/config.h"
#include "ipc/types.h"
#include "sched/slice_tree.h"

namespace gpuctl::daemon {

struct State {
  /// Path and settings, parents first; the root ("/") too.
  std::vector<std::pair<std::string, ipc::SliceSettings>> slices;
  /// What the configuration said about each slice when it was last applied, as JSON text.
  std::map<std::string, std::string> configured;
};

/// An empty state if there is no file. A file that cannot be understood is an error.
Result<State> load_state(const std::string& file);

/// Replaces the file in one step, mode 0600: a reader finds the old file or the new one, complete. Does not wait for
/// the disk, because the file is for the next daemon, not for the next boot.
Result<void> save_state(const std::string& file, const State& state);

/// The same for any text.
Result<void> replace_file(const std::string& file, const std::string& text);

/// Restores the slices of `state` in a fresh tree. A reserve that no longer fits (another GPU) is dropped, and a slice
/// that is not possible at all is left out; `notes` gets a line for each.
void restore_slices(const State& state, sched::SliceTree& tree, std::vector<std::string>& notes);

/// Applies the slices of a configuration, all or nothing; the problem names file, line and column. Slices that exist
/// already keep what was set at run time, unless `force` is set or the configuration now says something else about them
/// than when it was last applied (`configured`, which is updated).
Result<void> apply_config(const Config& config, bool force, std::map<std::string, std::string>& configured,
                          sched::SliceTree& tree);

State current_state(const sched::SliceTree& tree, const std::map<std::string, std::string>& configured);

}  // namespace gpuctl::daemon

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

/// An empty state when there is no file. What is there and cannot be understood is an error.
Result<State> load_state(const std::string& file);

/// Replaces the file in one step, mode 0600: a reader finds the old or the new one whole. Does not wait for the disk;
/// the file is for the next daemon, not for the next boot.
Result<void> save_state(const std::string& file, const State& state);

/// The same for any text.
Result<void> replace_file(const std::string& file, const std::string& text);

/// Puts the slices of `state` back into a fresh tree. A reserve that does not fit any more (another GPU) is dropped,
/// a slice that cannot be at all is left out; `notes` gets a line for each.
void restore_slices(const State& state, sched::SliceTree& tree, std::vector<std::string>& notes);

/// Applies the slices of a configuration, all or nothing; the problem names file, line and column. Slices that exist
/// already keep what was set at run time, unless `force`, or the configuration says something else about them than
/// when it was last applied (`configured`, which is brought up to date).
Result<void> apply_config(const Config& config, bool force, std::map<std::string, std::string>& configured,
                          sched::SliceTree& tree);

State current_state(const sched::SliceTree& tree, const std::map<std::string, std::string>& configured);

}  // namespace gpuctl::daemon

// How the tree of slices comes from the state of an earlier daemon and from the configuration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpuctld/config/config.h"
#include "gpuctld/config/state_file.h"
#include "sched/slice_tree.h"

namespace gpuctl::daemon {

/// Restores the slices of `state` in a fresh tree. A setting that is not possible on any GPU is dropped. A slice that
/// is not possible without it is left out. `notes` gets a line for each.
void restore_slices(const State& state, sched::SliceTree& tree, std::vector<std::string>& notes);

/// Applies the slices of a configuration, all or nothing; the problem names file, line and column. Whether a GPU has as
/// many SMs as are reserved does not matter. Slices that exist
/// already keep what was set at run time, unless `force` is set or the configuration now says something else about them
/// than when it was last applied (`configured`, which is updated). What it said then and says no more goes back to its
/// default, where the slices below allow that; `owner` is the default of the root's owner_uid.
Result<void> apply_config(const Config& config, bool force, std::uint32_t owner,
                          std::map<std::string, std::string>& configured, sched::SliceTree& tree);

/// `config` was written as the slices are. What changes nothing in `tree` counts as applied (`configured` is updated):
/// what is set from now on is later.
void note_saved(const Config& config, std::uint32_t owner, const sched::SliceTree& tree,
                std::map<std::string, std::string>& configured);

}  // namespace gpuctl::daemon

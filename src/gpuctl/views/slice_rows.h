// Slices as people see them: a tree, with "-" for what is not set.
#pragma once

#include <string>
#include <vector>

#include "gpuctl/text/table.h"
#include "ipc/types.h"

namespace gpuctl::cli {

struct TreeRow {
  const ipc::Slice* slice;
  std::string label;  ///< its last name, indented by two spaces per level; "/" for the root
};

/// Depth first, siblings by name, parents before children. Points into `slices`.
std::vector<TreeRow> tree_rows(const std::vector<ipc::Slice>& slices);

// In parentheses: what is in force where slices above bound it.
std::string reserve_text(const ipc::Slice& slice);   ///< "-", "8", "8 strict", "8 strict (active)"
std::string max_text(const ipc::Slice& slice);       ///< "-", "40", "- (40)", "40 (frozen)", "40 (throttled)"
std::string priority_text(const ipc::Slice& slice);  ///< "7", "7 (-10)"
std::string owner_text(const ipc::Slice& slice);     ///< "root", "alice:ml"

/// "auto (shared)": what is set, and what is in force if that is chosen.
std::string isolation_text(const ipc::Slice& slice);
/// The slice is frozen, or one above it.
bool is_frozen(const ipc::Slice& slice);
/// And the memory of its programs is to be on the host.
bool is_swapped(const ipc::Slice& slice);

/// "slices above bound it: priority -10 instead of 7, max 40 instead of none"; empty if they do not.
std::string bounds_text(const ipc::Slice& slice);

/// "policy srt of batch": that for jobs under which programs in the slice take turns; empty if there is none.
std::string ruling_policy(const std::vector<ipc::Slice>& slices, const std::string& path);

/// "GPU 0: reserve 8, max 40, memory max none" of each, where amounts of any slice differ by GPU.
std::vector<std::string> gpu_lines(const ipc::Slice& slice);
/// "GPU 0: 8 SMs granted, memory 1.0 GiB, at most 2.0 GiB" of each on which it has or had something.
std::vector<std::string> use_lines(const ipc::Slice& slice);
/// "3 refusals for want of memory, 1 by its own memory max"
std::string refusals_text(const ipc::Slice& slice);

/// "some 12.3 % of 10 s, 4.0 % of 60 s, 1.0 % of 300 s; 2.5 s in all"
std::vector<std::string> pressure_lines(const ipc::Slice& slice);

/// The output of `list`.
Table slice_table(const std::vector<ipc::Slice>& slices);

}  // namespace gpuctl::cli

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

std::string reserve_text(const ipc::Slice& slice);  ///< "-", "8", "8 lend", "8 strict"
std::string max_text(const ipc::Slice& slice);      ///< "-", "40"
std::string owner_text(const ipc::Slice& slice);    ///< "root", "alice:ml"

/// The output of `list`.
Table slice_table(const std::vector<ipc::Slice>& slices);

}  // namespace gpuctl::cli

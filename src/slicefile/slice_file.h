// Slices as a file describes them: the [slice] tables of gpuctl.toml, of its drop-ins, and of what `gpuctl apply`
// reads.
#pragma once

#include <string>
#include <vector>

#include "slicefile/configured_slice.h"

namespace gpuctl::slicefile {

/// What a file says, or every problem found, one line each: "file:line:column: field: reason".
struct SliceFile {
  std::vector<ConfiguredSlice> slices;  ///< parents first
  std::vector<std::string> problems;    ///< if there are any, the slices must not be used
};

/// Reads a file that describes slices and nothing else.
SliceFile read_slice_file(const std::string& file);

/// A slice as a table of such a file, every setting that `settings` has as a line: "[slice.\"batch\"]\nmax = 5\n".
std::string table_text(const std::string& path, const SliceSettings& settings);

}  // namespace gpuctl::slicefile

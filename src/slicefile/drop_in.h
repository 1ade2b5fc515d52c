// The files beside gpuctl.toml that `gpuctl save` writes, one for each slice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuctl::slicefile {

/// The first line of each. Files without it are somebody's own, and stay as they are.
inline constexpr std::string_view kSavedLine = "# Written by \"gpuctl save\", which also replaces and removes it.\n";

/// "batch+train.toml" in the directory: no slice has a '+' in its name. Of a path that is too long for a file's name
/// the beginning, "++" and what identifies all of it.
std::string drop_in_file(const std::string& directory, const std::string& path);

struct DropIn {
  std::string file;
  std::string text;
};

/// Makes the files, or replaces them by whole ones. Who reads one meanwhile, or after a power failure, finds the old
/// one or the new one. Writes none if a file of such a name is somebody's own.
Result<void> write_drop_ins(const std::vector<DropIn>& drop_ins);

/// The files of that directory that `gpuctl save` wrote.
std::vector<std::string> saved_drop_ins(const std::string& directory);

}  // namespace gpuctl::slicefile

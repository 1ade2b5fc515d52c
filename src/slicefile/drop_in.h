// The files beside gpuctl.toml that `gpuctl save` writes, one for each slice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuctl::slicefile {

/// The first line of each. Files without it are somebody's own, and stay as they are.
inline constexpr std::string_view kSavedLine = "# Written by \"gpuctl save\", which also replaces and removes it.\n";

/// "batch+train.toml" in the directory: no slice has a '+' in its name.
std::string drop_in_file(const std::string& directory, const std::string& path);

/// Makes the file, or replaces it by a whole one. Who reads it meanwhile, or after a power failure, finds the old one
/// or the new one. Fails for a file of that name that is somebody's own.
Result<void> write_drop_in(const std::string& file, const std::string& text);

/// The files of that directory that `gpuctl save` wrote.
std::vector<std::string> saved_drop_ins(const std::string& directory);

}  // namespace gpuctl::slicefile

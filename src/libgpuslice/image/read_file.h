// Reads the files that programs give the driver or a front end.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

namespace gpuslice {

/// The bytes of a regular file. Nothing if it cannot be read or is longer than `most_bytes`. Any thread.
std::optional<std::string> read_file(const char* path, std::size_t most_bytes = std::numeric_limits<off_t>::max());

}  // namespace gpuslice

// Names of kernels as people read them.
#pragma once

#include <string>
#include <vector>

namespace gpuctl::cli {

/// "scale(float*, float)" for "_Z5scalePff". A name that is not mangled stays as it is, and so does one that takes too
/// long: a name of 255 bytes can stand for gigabytes.
std::vector<std::string> demangled(const std::vector<std::string>& names);

}  // namespace gpuctl::cli

#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "base/result.h"

namespace gpuctl::daemon {

/// "PATH: WHAT: " and what errno says.
inline Error file_error(const std::string& path, const char* what) {
  return fail(path + ": " + what + ": " + std::strerror(errno));
}

}  // namespace gpuctl::daemon

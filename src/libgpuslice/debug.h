// Where the library says what it does: into the file named by GPUSLICE_DEBUG, else nowhere.
#pragma once

#include <cstdarg>

namespace gpuslice {

/// printf into the debug file, one line with time, process and thread; does nothing unless GPUSLICE_DEBUG is set.
[[gnu::format(printf, 1, 2)]] void debug(const char* format, ...);

}  // namespace gpuslice

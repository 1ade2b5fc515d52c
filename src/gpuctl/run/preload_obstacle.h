// Which programs ld.so preloads nothing into, as far as their files say.
#pragma once

#include <string>

namespace gpuctl::cli {

/// Why `program`, looked up as execvp(3) does, will not get a library by LD_PRELOAD: "it is linked statically", "its
/// interpreter /bin/x is set-uid". Empty if it will, or if its file does not say.
std::string preload_obstacle(const std::string& program);

/// The file that a process runs which becomes `program`, as /proc/PID/exe has it: of a script its interpreter. Empty if
/// its file does not say.
std::string file_run_by(const std::string& program);

}  // namespace gpuctl::cli

// Debuggers, which look at the program from outside.
#pragma once

namespace gpuslice {

/// Whether a debugger, or whatever traces processes, has hold of the program now. Any thread.
bool is_traced();

}  // namespace gpuslice

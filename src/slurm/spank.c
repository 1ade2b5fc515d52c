// What Slurm looks for in a plugin. These constants are C: in C++ they would have no external names.
#pragma GCC visibility push(default)
#include <slurm/spank.h>

SPANK_PLUGIN(gpuctl, 1)
#pragma GCC visibility pop

// Declares our functions of joining_functions.inc. After this header, names for which cuda.h means a newer function
// mean the oldest one.
#pragma once

#include "libgpuslice/interpose/hooks.h"

#undef cuMemPrefetchAsync
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
#undef cuStreamDestroy

#define X(exported, symbol, since, per_thread, before, parameters, arguments) GPUSLICE_HOOK exported parameters;
#include "libgpuslice/interpose/joining_functions.inc"
#undef X

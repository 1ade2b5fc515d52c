// Declares our functions of joining_functions.inc. After this header, names for which cuda.h means a newer function
// mean the oldest one.
#pragma once

#include "libgpuslice/interpose/hooks.h"

// Types that older cuda.h lack.
#if CUDA_VERSION < 13010
using CUstreamCigCaptureParams = void;
#endif
#if CUDA_VERSION < 13030
using CUgraphRecaptureCallback = void*;
#endif
#if CUDA_VERSION < 13050
using CUDA_FABRIC_COPY_BATCH_OP = void;
#endif

#undef cuEventElapsedTime
#undef cuMemPrefetchAsync
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64

#define X(exported, symbol, since, per_thread, before, parameters, arguments) GPUSLICE_HOOK exported parameters;
#include "libgpuslice/interpose/joining_functions.inc"
#undef X

// Functions before which lanes must join (joining.h), so that they see what confined launches have done. The call goes
// to the driver unchanged.
#include "libgpuslice/interpose/joining_functions.h"

#include "libgpuslice/driver/capture.h"
#include "libgpuslice/driver/dlsym.h"
#include "libgpuslice/streams/joining.h"

#define STREAM(stream) join_before(explicit_stream(stream, is_per_thread))
#define ALL join_all()
#define X(exported, symbol, since, per_thread, before, parameters, arguments)                              \
  GPUSLICE_HOOK exported parameters {                                                                      \
    using namespace gpuslice;                                                                              \
    static const auto real = reinterpret_cast<CUresult(CUDAAPI*) parameters>(libcuda_function(#exported)); \
    [[maybe_unused]] constexpr bool is_per_thread = per_thread;                                            \
    if (!real) return CUDA_ERROR_NOT_INITIALIZED;                                                          \
    before;                                                                                                \
    return real arguments;                                                                                 \
  }
#include "libgpuslice/interpose/joining_functions.inc"

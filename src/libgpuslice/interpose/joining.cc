// Functions before which lanes must join, or which follow the confined launches of their stream (joining.h), so that
// they see what those have done. Nothing else is changed.
#include "libgpuslice/interpose/joining_functions.h"

#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/streams/joining.h"

namespace gpuslice {

namespace {

/// Only looks at what streams have done.
struct LookAll {
  CUresult operator()(const auto& call) const {
    join_all();
    return call();
  }
};

struct LookAtOne {
  CUstream stream;

  CUresult operator()(const auto& call) const {
    join_before(stream);
    return call();
  }
};

struct JoinAll {
  CUresult operator()(const auto& call) const {
    const CallInFlight in_flight(CU_STREAM_LEGACY);
    join_all();
    return call();
  }
};

struct JoinOne {
  CUstream stream;

  CUresult operator()(const auto& call) const {
    const StreamCall in_flight(stream);
    return call();
  }
};

struct FollowOne {
  CUstream& argument;
  bool is_per_thread;

  CUresult operator()(const auto& call) const {
    return follow(explicit_stream(argument, is_per_thread), [&](CUstream other) {
      if (other) argument = other;
      return call();
    });
  }
};

}  // namespace
}  // namespace gpuslice

#define ALL JoinAll()
#define STREAM(stream)                     \
  JoinOne {                                \
    explicit_stream(stream, is_per_thread) \
  }
#define LOOK_ALL LookAll()
#define LOOK(stream)                       \
  LookAtOne {                              \
    explicit_stream(stream, is_per_thread) \
  }
#define FOLLOW(stream)    \
  FollowOne {             \
    stream, is_per_thread \
  }
#define X(exported, symbol, since, per_thread, before, parameters, arguments)                              \
  GPUSLICE_HOOK exported parameters {                                                                      \
    using namespace gpuslice;                                                                              \
    static const auto real = reinterpret_cast<CUresult(CUDAAPI*) parameters>(libcuda_function(#exported)); \
    [[maybe_unused]] constexpr bool is_per_thread = per_thread;                                            \
    if (!real) return CUDA_ERROR_NOT_INITIALIZED;                                                          \
    return before([&] { return real arguments; });                                                         \
  }
#include "libgpuslice/interpose/joining_functions.inc"
#undef X
#undef FOLLOW
#undef LOOK
#undef LOOK_ALL
#undef STREAM

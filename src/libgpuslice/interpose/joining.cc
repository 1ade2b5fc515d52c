// Functions before which lanes must join, or which follow the confined launches of their stream (joining.h), so that
// they see what those have done; and functions that only look at what the GPU has done (look_gate.h). Nothing else is
// changed.
#include "libgpuslice/interpose/joining_functions.h"

#include "libgpuslice/agent/bursts.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/base/look_gate.h"
#include "libgpuslice/streams/joining.h"

namespace gpuslice {

namespace {

/// What a call has seen of the device once it has succeeded (agent/burst.h).
using Seen = Burst::Seen;

/// Waits for the device, or asks whether it is done.
template <class Call>
CUresult seen_by(Seen seen, CUstream stream, const Call& call) {
  const BurstWait wait;
  const CUresult result = make_look(call);
  if (result == CUDA_SUCCESS) wait.over(seen, stream);
  return result;
}

/// Only looks at what streams have done.
struct LookAll {
  Seen seen;

  CUresult operator()(const auto& call) const {
    join_all();
    return seen_by(seen, nullptr, call);
  }
};

struct LookAtOne {
  CUstream stream;

  CUresult operator()(const auto& call) const {
    join_before(stream);
    return seen_by(Seen::kStream, stream, call);
  }
};

/// Nothing joins: an event is recorded where what comes before it went.
struct LookAtEvent {
  CUresult operator()(const auto& call) const { return seen_by(Seen::kSome, nullptr, call); }
};

/// Of what has been done already.
struct LookBack {
  CUresult operator()(const auto& call) const { return make_look(call); }
};

/// A copy or memset that acts on a default stream.
struct CopyAtOnce {
  bool is_per_thread;

  CUresult operator()(const auto& call) const {
    const CallInFlight in_flight(CU_STREAM_LEGACY);
    join_all();
    note_work(explicit_stream(nullptr, is_per_thread));
    return call();
  }
};

/// One that returns when it has been made, with all before it in that stream. `seen`: kSome if that depends on the
/// memory.
struct CopyAndWait {
  bool is_per_thread;
  Seen seen;

  CUresult operator()(const auto& call) const {
    const CallInFlight in_flight(CU_STREAM_LEGACY);
    join_all();
    const CUstream stream = explicit_stream(nullptr, is_per_thread);
    note_work(stream, true);
    return seen_by(seen, stream, call);
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

/// A copy, or other work for the GPU.
struct WorkInOne {
  CUstream stream;

  CUresult operator()(const auto& call) const {
    note_work(stream);
    return JoinOne{stream}(call);
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

struct CopyInOne {
  CUstream& argument;
  bool is_per_thread;
  bool reads_results = false;

  CUresult operator()(const auto& call) const {
    note_work(explicit_stream(argument, is_per_thread), reads_results);
    return FollowOne{argument, is_per_thread}(call);
  }
};

}  // namespace
}  // namespace gpuslice

#define ALL JoinAll()
#define STREAM(stream)                     \
  JoinOne {                                \
    explicit_stream(stream, is_per_thread) \
  }
#define WORK(stream)                       \
  WorkInOne {                              \
    explicit_stream(stream, is_per_thread) \
  }
#define LOOK_ALL \
  LookAll {      \
    Seen::kAll   \
  }
#define LOOK_CONTEXT \
  LookAll {          \
    Seen::kSome      \
  }
#define LOOK_EVENT LookAtEvent()
#define LOOK_BACK LookBack()
#define COPY_NOW  \
  CopyAtOnce {    \
    is_per_thread \
  }
#define COPY_BACK                \
  CopyAndWait {                  \
    is_per_thread, Seen::kStream \
  }
#define COPY_ANY               \
  CopyAndWait {                \
    is_per_thread, Seen::kSome \
  }
#define LOOK(stream)                       \
  LookAtOne {                              \
    explicit_stream(stream, is_per_thread) \
  }
#define FOLLOW(stream)    \
  FollowOne {             \
    stream, is_per_thread \
  }
#define COPY_OUT(stream)        \
  CopyInOne {                   \
    stream, is_per_thread, true \
  }
#define COPY(stream)      \
  CopyInOne {             \
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
#undef COPY
#undef COPY_OUT
#undef FOLLOW
#undef LOOK
#undef COPY_ANY
#undef COPY_BACK
#undef COPY_NOW
#undef LOOK_BACK
#undef LOOK_EVENT
#undef LOOK_CONTEXT
#undef LOOK_ALL
#undef WORK
#undef STREAM

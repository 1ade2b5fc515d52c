#include <cstring>

#include "gpuslice/gpuslice.h"
#include "libgpuslice/agent/bursts.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/nothrow.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/interpose/hooks.h"

using gpuslice::Client;
using gpuslice::nothrow;
namespace ipc = gpuctl::ipc;

namespace {

/// The daemon's own answers begin with its name. Any other error means that it did not answer.
int error_of(const gpuctl::Error& error) {
  return error.message.starts_with("gpuctld: ") ? GPUSLICE_ERROR_REFUSED : GPUSLICE_ERROR_NO_DAEMON;
}

}  // namespace

#define GPUSLICE_API extern "C" __attribute__((visibility("default")))

GPUSLICE_API int gpuslice_version(void) {
  return GPUSLICE_VERSION;
}

GPUSLICE_API int gpuslice_attach(const char* slice) {
  if (!slice || !*slice) return GPUSLICE_ERROR_INVALID;
  return nothrow(
      [&]() -> int {
        gpuctl::Result<void> attached = Client::get().attach(slice);
        if (!attached) return error_of(attached.error());
        gpuslice::start_client_if_initialised();
        return Client::get().wanted() ? GPUSLICE_OK : GPUSLICE_ERROR_NO_MEMORY;
      },
      GPUSLICE_ERROR_NO_MEMORY);
}

GPUSLICE_API int gpuslice_slice(char* buffer, size_t size) {
  if (!buffer) return GPUSLICE_ERROR_INVALID;
  return nothrow(
      [&]() -> int {
        const std::string slice = Client::get().slice();
        if (slice.empty()) return GPUSLICE_ERROR_NOT_ATTACHED;
        if (slice.size() >= size) return GPUSLICE_ERROR_INVALID;
        std::memcpy(buffer, slice.c_str(), slice.size() + 1);
        return GPUSLICE_OK;
      },
      GPUSLICE_ERROR_NO_MEMORY);
}

GPUSLICE_API int gpuslice_get_grant(int device, gpuslice_grant* out) {
  if (!out || device < 0 || device >= static_cast<int>(ipc::kMaxDevices)) return GPUSLICE_ERROR_INVALID;
  ipc::Stub* stub = Client::get().stub();
  if (!stub) return GPUSLICE_ERROR_NOT_ATTACHED;
  if (device >= static_cast<int>(ipc::load(stub->devices))) return GPUSLICE_ERROR_INVALID;
  const ipc::Grant& grant = stub->grant[device];
  const ipc::Usage& usage = stub->usage[device];
  *out = {.capsm = ipc::load(grant.polled.capsm),
          .demand = ipc::load(usage.demand),
          .holding = ipc::load(usage.holding),
          .priority = ipc::load(grant.priority),
          .evictions = ipc::load(usage.evictions),
          .evict_ns_last = ipc::load(usage.evict_ns_last)};
  return GPUSLICE_OK;
}

GPUSLICE_API int gpuslice_set_priority_hint(int priority) {
  return nothrow(
      [&]() -> int {
        if (!Client::get().stub()) return GPUSLICE_ERROR_NOT_ATTACHED;
        gpuctl::Result<void> set = Client::get().set_hint(priority);
        return set ? GPUSLICE_OK : error_of(set.error());
      },
      GPUSLICE_ERROR_NO_MEMORY);
}

GPUSLICE_API int gpuslice_stream_latency_critical(void* stream, int on) {
  return nothrow(
      [&]() -> int {
        gpuslice::Context* context = gpuslice::Contexts::current();
        if (!context) return GPUSLICE_ERROR_NOT_ATTACHED;
        context->set_latency_critical(gpuslice::explicit_stream(static_cast<CUstream>(stream), false), on != 0);
        return GPUSLICE_OK;
      },
      GPUSLICE_ERROR_NO_MEMORY);
}

/// A request is the instant at which it began: nothing is kept of it.
GPUSLICE_API gpuslice_request gpuslice_request_begin(void) {
  return gpuslice::monotonic_ns();
}

GPUSLICE_API int gpuslice_request_end(gpuslice_request request) {
  const std::uint64_t now_ns = gpuslice::monotonic_ns();
  if (request == 0 || request > now_ns) return GPUSLICE_ERROR_INVALID;
  return gpuslice::count_request(now_ns - request) ? GPUSLICE_OK : GPUSLICE_ERROR_NOT_ATTACHED;
}

GPUSLICE_API const char* gpuslice_error_string(int error) {
  switch (error) {
    case GPUSLICE_OK:
      return "no error";
    case GPUSLICE_ERROR_INVALID:
      return "an argument is null or out of range";
    case GPUSLICE_ERROR_NOT_ATTACHED:
      return "this program is not attached to a slice";
    case GPUSLICE_ERROR_REFUSED:
      return "gpuctld refused: no such slice, or no right to it";
    case GPUSLICE_ERROR_NO_DAEMON:
      return "gpuctld does not answer";
    case GPUSLICE_ERROR_NO_MEMORY:
      return "out of memory";
    default:
      return "unknown error";
  }
}

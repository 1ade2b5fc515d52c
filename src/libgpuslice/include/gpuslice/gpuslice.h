/* libgpuslice: this program as a member of a slice. See libgpuslice(3).
 *
 * Programs started by `gpuctl run` need none of this: the library is preloaded and finds its slice in the environment.
 * A program that links it (-lgpuslice, before -lcuda) may join a slice itself, look at its grant and give hints.
 *
 * All functions may be called from any thread, before or after cuInit. They return 0 or a negative gpuslice_error;
 * they never exit, print or throw. Strings passed in are copied. Amounts of SMs are CapSM: one unit is as many thread
 * blocks of a kernel as one SM can hold. */
#ifndef GPUSLICE_GPUSLICE_H
#define GPUSLICE_GPUSLICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSLICE_VERSION 1

typedef enum gpuslice_error {
  GPUSLICE_OK = 0,
  GPUSLICE_ERROR_INVALID = -1,      /* an argument is null or out of range */
  GPUSLICE_ERROR_NOT_ATTACHED = -2, /* this program is in no slice (yet) */
  GPUSLICE_ERROR_REFUSED = -3,      /* the daemon said no: no such slice, or no right to it */
  GPUSLICE_ERROR_NO_DAEMON = -4,    /* gpuctld does not answer */
  GPUSLICE_ERROR_NO_MEMORY = -5
} gpuslice_error;

/* What this program may use on one device, and what it uses. */
typedef struct gpuslice_grant {
  uint32_t capsm;        /* CapSM granted now; 0 = everything is evicted */
  uint32_t demand;       /* CapSM its outstanding launches could fill */
  uint32_t holding;      /* CapSM its workers hold, as last known */
  int32_t priority;      /* of the slice */
  uint64_t evictions;    /* shrinks that hit a running kernel so far */
  uint64_t evict_ns_last; /* nanoseconds from the decision to SMs free, of the last of them */
} gpuslice_grant;

/* The version of this interface the library implements. */
int gpuslice_version(void);

/* Joins `slice`, or moves there from another one; running kernels obey the new grant at once. Before cuInit it only sets
 * the slice that cuInit will join, and returns 0. Waits for the daemon, at most 2 s. */
int gpuslice_attach(const char* slice);

/* Writes the slice's path and a NUL into buffer of `size` bytes. GPUSLICE_ERROR_INVALID if it does not fit. */
int gpuslice_slice(char* buffer, size_t size);

/* The grant on the device with this ordinal, as this program counts them. */
int gpuslice_get_grant(int device, gpuslice_grant* grant);

/* Asks for a priority inside what the slice allows; greater goes first. */
int gpuslice_set_priority_hint(int priority);

/* Marks a stream (a CUstream or cudaStream_t of the current context) latency-critical or not: of this program's
 * streams it is served first. Kept until the stream is destroyed. */
int gpuslice_stream_latency_critical(void* stream, int on);

/* One line of English for a gpuslice_error. Never null; static. */
const char* gpuslice_error_string(int error);

#ifdef __cplusplus
}
#endif

#endif

/* libgpuslice: this program as a member of a slice. See libgpuslice(3).
 *
 * Programs started by `gpuctl run` need none of this: the library is preloaded and finds its slice in the environment.
 * A program that links it (-lgpuslice, before -lcuda) may join a slice itself, look at its grant and give hints.
 *
 * All functions may be called from any thread, before or after cuInit. They return 0 or a negative gpuslice_error;
 * they never exit, print or throw. Strings passed in are copied. Amounts are whole SMs. */
#ifndef GPUSLICE_GPUSLICE_H
#define GPUSLICE_GPUSLICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSLICE_VERSION 5

/* A program that is to run with and without the library defines GPUSLICE_OPTIONAL before it includes this header, and
 * does not link -lgpuslice. Where gpuctl run preloads the library, the functions that name requests are there; else
 * they are null: `gpuslice_request r = gpuslice_request_begin ? gpuslice_request_begin() : 0;` */
#ifdef GPUSLICE_OPTIONAL
#define GPUSLICE_FUNCTION __attribute__((weak))
#else
#define GPUSLICE_FUNCTION
#endif

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
  uint32_t capsm;         /* SMs granted now; 0 = everything is evicted */
  uint32_t demand;        /* SMs that its outstanding launches could fill */
  uint32_t holding;       /* SMs that its workers hold, as last known */
  int32_t priority;       /* of the slice */
  uint64_t evictions;     /* shrinks that hit a running kernel so far */
  uint64_t evict_ns_last; /* of the last of them: nanoseconds from the decision until the SMs were free */
} gpuslice_grant;

/* The version of this interface the library implements. */
int gpuslice_version(void);

/* Joins `slice`, or moves there from another one; running kernels obey the new grant at once. Before cuInit it only
 * sets the slice that cuInit will join, and returns 0. Waits for the daemon, at most 2 s. */
int gpuslice_attach(const char* slice);

/* Writes the slice's path and a NUL into buffer of `size` bytes. GPUSLICE_ERROR_INVALID if it does not fit. */
int gpuslice_slice(char* buffer, size_t size);

/* Reads the grant on the device with this ordinal, in the program's own numbering. */
int gpuslice_get_grant(int device, gpuslice_grant* grant);

/* Asks for a priority inside what the slice allows; greater goes first. */
int gpuslice_set_priority_hint(int priority);

/* Marks a stream (a CUstream or cudaStream_t of the current context) as latency-critical, or takes that back. Such a
 * stream is served before the program's other streams. The mark stays until the stream is destroyed. */
int gpuslice_stream_latency_critical(void* stream, int on);

/* Requests that the program names. gpuctl measures how long a program's work on the GPU takes by itself: in bursts,
 * from the first launch with nothing outstanding to the return of the wait that sees all done. Who answers several
 * requests at once, or whose requests are more than a burst, says where a request begins and ends. From the first one
 * that ends, these count and bursts do not (gpuctl(1), docs/latency.md).
 *
 * gpuslice_request_begin() returns what gpuslice_request_end() takes, never 0. Requests may overlap and nest, and may
 * end in another thread. One that never ends counts nothing and holds nothing. Each is to end once. A request counts on
 * the device of the context that is current where it ends. Neither waits for the GPU: the end is when the program has
 * its answer. Both take some 50 ns, and make no system call.
 *
 * gpuslice_request_end() returns GPUSLICE_ERROR_INVALID for 0 or a time to come, and GPUSLICE_ERROR_NOT_ATTACHED where
 * nothing counts. Since version 5. */
typedef uint64_t gpuslice_request;
GPUSLICE_FUNCTION gpuslice_request gpuslice_request_begin(void);
GPUSLICE_FUNCTION int gpuslice_request_end(gpuslice_request request);

/* One line of English for a gpuslice_error. Never null; static. */
const char* gpuslice_error_string(int error);

#ifdef __cplusplus
}
#endif

#endif

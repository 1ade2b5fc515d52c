/* A program of release 0.1.0 of the interface, as its compiler saw <gpuslice/gpuslice.h>: library_test.py compiles it
 * with the header of today. What it assumes is in programs that nobody compiles again. So a line here changes only with
 * the number in the name of the library; a release adds lines for what is new. */
#include <gpuslice/gpuslice.h>
#include <stddef.h>

_Static_assert(GPUSLICE_VERSION >= 5, "the version");

_Static_assert(sizeof(gpuslice_error) == 4, "gpuslice_error");
_Static_assert(GPUSLICE_OK == 0, "GPUSLICE_OK");
_Static_assert(GPUSLICE_ERROR_INVALID == -1, "GPUSLICE_ERROR_INVALID");
_Static_assert(GPUSLICE_ERROR_NOT_ATTACHED == -2, "GPUSLICE_ERROR_NOT_ATTACHED");
_Static_assert(GPUSLICE_ERROR_REFUSED == -3, "GPUSLICE_ERROR_REFUSED");
_Static_assert(GPUSLICE_ERROR_NO_DAEMON == -4, "GPUSLICE_ERROR_NO_DAEMON");
_Static_assert(GPUSLICE_ERROR_NO_MEMORY == -5, "GPUSLICE_ERROR_NO_MEMORY");

/* The program has the room, and the library fills it: it may not grow either. */
#define FIELD(name, type, at)                                                      \
  _Static_assert(offsetof(gpuslice_grant, name) == (at), "gpuslice_grant." #name); \
  static type* const grant_##name = &a_grant.name
static gpuslice_grant a_grant;
_Static_assert(sizeof(gpuslice_grant) == 32 && _Alignof(gpuslice_grant) == 8, "gpuslice_grant");
FIELD(capsm, uint32_t, 0);
FIELD(demand, uint32_t, 4);
FIELD(holding, uint32_t, 8);
FIELD(priority, int32_t, 12);
FIELD(evictions, uint64_t, 16);
FIELD(evict_ns_last, uint64_t, 24);

static uint64_t a_request;
static gpuslice_request* const request = &a_request;

static int (*const version)(void) = gpuslice_version;
static int (*const attach)(const char*) = gpuslice_attach;
static int (*const slice)(char*, size_t) = gpuslice_slice;
static int (*const get_grant)(int, gpuslice_grant*) = gpuslice_get_grant;
static int (*const set_priority_hint)(int) = gpuslice_set_priority_hint;
static int (*const stream_latency_critical)(void*, int) = gpuslice_stream_latency_critical;
static gpuslice_request (*const request_begin)(void) = gpuslice_request_begin;
static int (*const request_end)(gpuslice_request) = gpuslice_request_end;
static const char* (*const error_string)(int) = gpuslice_error_string;

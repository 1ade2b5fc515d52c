/* The public header is one of C. */
#include <gpuslice/gpuslice.h>

int version_seen_from_c(void);

int version_seen_from_c(void) {
  return gpuslice_version() == GPUSLICE_VERSION;
}

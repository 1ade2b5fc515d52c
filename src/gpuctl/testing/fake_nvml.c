/* NVML of a driver that can limit memory by cgroup, as NVIDIA describes it. FAKE_NVML_LIMITS="UUID DIRECTORY BYTES":
 * the only limit that somebody else has set. FAKE_NVML_SET=FILE: each limit that is set is a line of it, "UUID
 * DIRECTORY SOFT HARD". FILE.error, if it is there, has the error that is answered all the same. "abort" in place of a
 * file: this library crashes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSuccess = 0, kUninitialized = 1, kNotSupported = 3, kNotFound = 6 };

static int started;
static char uuids[2][8] = {"GPU-1", "GPU-2"};

int nvmlInit_v2(void) {
  ++started;
  return kSuccess;
}

int nvmlShutdown(void) {
  --started;
  return kSuccess;
}

/* Of the software GPU too, whose UUID is longer: it is then the first. */
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (!started) return kUninitialized;
  if (strncmp(uuid, "MIG-", 4) == 0) return kNotFound;
  *device = strcmp(uuid, uuids[1]) == 0 ? uuids[1] : uuids[0];
  return kSuccess;
}

struct limits {
  const char* name_space;
  unsigned long long soft, hard, used;
};

int nvmlDeviceGetMemoryLimits_v1(void* device, struct limits* limits) {
  char uuid[64], directory[1024];
  unsigned long long hard;
  const char* set = getenv("FAKE_NVML_LIMITS");
  if (!started) return kUninitialized;
  if (set == NULL || sscanf(set, "%63s %1023s %llu", uuid, directory, &hard) != 3) return kNotFound;
  if (strcmp(device, uuid) != 0 || strcmp(limits->name_space, directory) != 0) return kNotFound;
  limits->soft = limits->used = 0;
  limits->hard = hard;
  return kSuccess;
}

int nvmlDeviceSetMemoryLimits_v1(void* device, const struct limits* limits) {
  char path[1024];
  int error = kSuccess;
  const char* set = getenv("FAKE_NVML_SET");
  FILE* file;
  if (!started) return kUninitialized;
  if (set == NULL) return kNotSupported;
  if (strcmp(set, "abort") == 0) abort();
  snprintf(path, sizeof path, "%s.error", set);
  if ((file = fopen(path, "r")) != NULL) {
    if (fscanf(file, "%d", &error) != 1) error = kNotSupported;
    fclose(file);
  }
  if ((file = fopen(set, "a")) == NULL) return kNotSupported;
  fprintf(file, "%s %s %llu %llu\n", (const char*)device, limits->name_space, limits->soft, limits->hard);
  fclose(file);
  return error;
}

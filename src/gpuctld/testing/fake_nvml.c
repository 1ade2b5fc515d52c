// Stands in for NVIDIA's management library: it knows one GPU, which has used 123456 millijoules. It limits
// memory of control groups: FAKE_NVML_SET=FILE has "DIRECTORY SOFT HARD" of the last one, FAKE_NVML_ERROR=N is what is
// answered.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ready;

int nvmlInit_v2(void) {
  ready = 1;
  return 0;
}

int nvmlShutdown(void) {
  ready = 0;
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  static int gpu;
  if (!ready || strcmp(uuid, "GPU-f1f2f3f4-f5f6-f7f8-f9fa-fbfcfdfeff00") != 0) return 6;
  *device = &gpu;
  return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (!ready || device == NULL) return 2;
  *millijoules = 123456;
  return 0;
}

struct limits {
  const char* name_space;
  unsigned long long soft, hard;
};

int nvmlDeviceSetMemoryLimits_v1(void* device, const struct limits* limits) {
  const char *set = getenv("FAKE_NVML_SET"), *error = getenv("FAKE_NVML_ERROR");
  FILE* file = set == NULL ? NULL : fopen(set, "w");
  if (!ready || device == NULL || file == NULL) return 2;
  fprintf(file, "%s %llu %llu\n", limits->name_space, limits->soft, limits->hard);
  fclose(file);
  return error == NULL ? 0 : atoi(error);
}

// Stands in for NVIDIA's management library: it knows one GPU, which has used 123456 millijoules.
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

// A CUDA driver library with three devices, for tests of DriverProbe and of the daemon. FAKE_DRIVER says how it
// behaves.
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* behaviour(void) {
  const char* value = getenv("FAKE_DRIVER");
  return value != NULL ? value : "";
}

CUresult cuInit(unsigned int flags) {
  (void)flags;
  if (strcmp(behaviour(), "hang") == 0) pause();
  if (strcmp(behaviour(), "crash") == 0) abort();
  if (strcmp(behaviour(), "none") == 0) return CUDA_ERROR_NO_DEVICE;
  if (strncmp(behaviour(), "until:", 6) == 0 && access(behaviour() + 6, F_OK) != 0) return CUDA_ERROR_UNKNOWN;
  return strcmp(behaviour(), "fail") == 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 3;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  (void)device;
  strncpy(name, "Fake \"GPU\" \xff", (size_t)length);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = (char)(0xf0 + i + device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  (void)device;
  *bytes = (size_t)141 << 30;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? 132 - device
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE             ? (device == 2 ? 3 : 0)
                                                                       : -1;
  return CUDA_SUCCESS;
}

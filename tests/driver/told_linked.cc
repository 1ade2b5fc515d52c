// What a program that is linked with the driver is told of its GPU, by the exported names: SMs and bytes, on one line.
#include "driver.h"

int main() {
  int sms = 0;
  size_t bytes = 0;
  DRIVER_CHECK(cuInit(0));
  DRIVER_CHECK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  DRIVER_CHECK(cuDeviceTotalMem(&bytes, 0));
  std::printf("%d %zu\n", sms, bytes);
  return 0;
}

#include "softgpu/device/device.h"

#include <cstdio>
#include <cstring>

namespace gpuctl::softgpu {

CUuuid device_uuid(std::size_t number) {
  char text[] = "gpuctl-softgpu-0";
  CUuuid uuid;
  static_assert(sizeof text == sizeof uuid.bytes + 1);
  text[sizeof uuid.bytes - 1] = static_cast<char>('0' + number);
  std::memcpy(uuid.bytes, text, sizeof uuid.bytes);
  return uuid;
}

std::string device_uuid_text(std::size_t number) {
  const CUuuid uuid = device_uuid(number);
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

std::string pci_bus_id(std::size_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02x:00.0", static_cast<unsigned>(number & 0xff));
  return text;
}

}  // namespace gpuctl::softgpu

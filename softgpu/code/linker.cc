#include "softgpu/code/linker.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "ptx/container/fatbin.h"
#include "softgpu/device/config.h"
#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {

namespace {

constexpr std::uint32_t kEntryHeaderBytes = 64;

template <class Number>
void put(std::string& bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

/// An entry of a fatbin (ptx/fatbin.h), uncompressed.
std::string entry(ptx::FatbinKind kind, std::string_view payload) {
  const std::size_t padded = (payload.size() + 7) / 8 * 8;
  std::string bytes(kEntryHeaderBytes + padded, '\0');
  put(bytes, 0x00, static_cast<std::uint16_t>(kind));
  put(bytes, 0x04, kEntryHeaderBytes);
  put(bytes, 0x08, std::uint64_t{padded});
  put(bytes, 0x1c, std::uint32_t{kComputeMajor * 10 + kComputeMinor});
  bytes.replace(kEntryHeaderBytes, payload.size(), payload);
  return bytes;
}

}  // namespace

std::string compiled_image(std::string_view text) {
  const std::string entries =
      entry(ptx::FatbinKind::kElf, std::string_view("\0", 1)) + entry(ptx::FatbinKind::kPtx, text);
  std::string image(ptx::kFatbinHeaderBytes, '\0');
  put(image, 0, ptx::kFatbinMagic);
  put(image, 4, std::uint16_t{1});
  put(image, 6, static_cast<std::uint16_t>(ptx::kFatbinHeaderBytes));
  put(image, 8, std::uint64_t{entries.size()});
  return image + entries;
}

void take_time_to_compile() {
  const std::string until = read_config().compile_until;
  while (!until.empty() && access(until.c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace gpuctl::softgpu

#include "softgpu/config.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "softgpu/pacing.h"
#include "softgpu/table_layout.h"

namespace gpuctl::softgpu {
namespace {

std::uint64_t number_from_env(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr) return otherwise;
  std::uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || value < least || value > most) return otherwise;
  return value;
}

}  // namespace

std::string default_table_path() {
  // Not $XDG_RUNTIME_DIR: a login shell has it and a service of the same user often has not, and both must meet.
  const char* directory = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
  return std::string(directory) + "/softgpu-" + std::to_string(geteuid()) + "-v" + std::to_string(kTableVersion);
}

Config read_config() {
  Config config;
  config.sms = static_cast<std::uint32_t>(number_from_env("SOFTGPU_SMS", 1, kMaxSms, config.sms));
  const char* path = std::getenv("SOFTGPU_TABLE");
  config.table_path = path != nullptr && *path != '\0' ? path : default_table_path();
  config.priorities = number_from_env("SOFTGPU_PRIORITIES", 0, 1, 1) == 1;
  config.below_normal = number_from_env("CUDA_MPS_CLIENT_PRIORITY", 0, 1, 0) == 1;
  config.work_queues = number_from_env("SOFTGPU_WORK_QUEUES", 0, 128, config.work_queues);
  config.warp_instruction_ns =
      number_from_env("SOFTGPU_WARP_INSTRUCTION_NS", 0, 1'000'000'000, kDefaultWarpInstructionNs);
  if (const char* file = std::getenv("SOFTGPU_COMPILE_UNTIL")) config.compile_until = file;
  config.memset_us = number_from_env("SOFTGPU_MEMSET_US", 0, 10'000'000, config.memset_us);
  const char* loading = std::getenv("CUDA_MODULE_LOADING");
  config.lazy_loading = loading != nullptr && std::strcmp(loading, "LAZY") == 0;
  config.strict_exit = number_from_env("SOFTGPU_STRICT_EXIT", 0, 1, 0) == 1;
  config.memory_bytes = number_from_env("SOFTGPU_MEMORY_MIB", 1, 1 << 20, config.memory_bytes >> 20) << 20;
  return config;
}

}  // namespace gpuctl::softgpu

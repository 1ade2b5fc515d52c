#include "softgpu/device/config.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "softgpu/device/pacing.h"
#include "softgpu/table/table_layout.h"

namespace gpuctl::softgpu {
namespace {

struct Bounds {
  std::uint64_t least, most;
};

std::optional<std::uint64_t> number(std::string_view text, Bounds bounds) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < bounds.least || value > bounds.most) return std::nullopt;
  return value;
}

std::uint64_t number_from_env(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : number(text, {least, most}).value_or(otherwise);
}

constexpr std::uint64_t kQueuesUnderMps = 2;

/// Stands for the directory if the process is there that its pid file names; else 0.
std::uint64_t mps_in(const std::string& directory) {
  struct stat status {};
  pid_t pid = 0;
  std::ifstream(directory + "/nvidia-cuda-mps-control.pid") >> pid;
  if (pid <= 0 || kill(pid, 0) != 0 || stat(directory.c_str(), &status) != 0) return 0;
  return status.st_ino;
}

/// In percent; 100 without a number.
double percentage_from_env() {
  const char* text = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  char* end = nullptr;
  const double value = text == nullptr ? 0 : std::strtod(text, &end);
  return end != text && end != nullptr && *end == '\0' && value > 0 && value < 100 ? value : 100;
}

/// The number for each device from a comma-separated list; the last one also applies to all further devices.
std::vector<std::uint64_t> numbers_from_env(const char* name, Bounds bounds, std::uint64_t otherwise,
                                            std::size_t count) {
  std::vector<std::uint64_t> values;
  const char* set = std::getenv(name);
  std::string_view text = set == nullptr ? "" : set;
  while (values.size() < count) {
    const std::size_t comma = text.find(',');
    values.push_back(number(text.substr(0, comma), bounds).value_or(otherwise));
    if (comma != std::string_view::npos) text.remove_prefix(comma + 1);
  }
  return values;
}

std::vector<DeviceConfig> devices_from_env() {
  std::vector<DeviceConfig> devices(number_from_env("SOFTGPU_DEVICES", 1, kMostDevices, 1));
  const DeviceConfig usual;
  const auto sms = numbers_from_env("SOFTGPU_SMS", {1, kMaxSms}, usual.sms, devices.size());
  const auto memory = numbers_from_env("SOFTGPU_MEMORY_MIB", {1, 1 << 20}, usual.memory_bytes >> 20, devices.size());
  const auto shared = numbers_from_env("SOFTGPU_SHARED_MEMORY_MIB", {1, 1 << 20}, 0, devices.size());
  const char* path = std::getenv("SOFTGPU_TABLE");
  const std::string first = path != nullptr && *path != '\0' ? path : default_table_path();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].sms = static_cast<std::uint32_t>(sms[i]);
    devices[i].memory_bytes = memory[i] << 20;
    if (shared[i] != 0) devices[i].shared_bytes = shared[i] << 20;
    devices[i].table_path = i == 0 ? first : first + "-" + std::to_string(i);
  }
  return devices;
}

}  // namespace

std::string default_table_path() {
  // Not $XDG_RUNTIME_DIR: a login shell has it, a service of the same user often has not, and both must use the same
  // table.
  const char* directory = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
  return std::string(directory) + "/softgpu-" + std::to_string(geteuid()) + "-v" + std::to_string(kTableVersion);
}

Config read_config() {
  Config config;
  config.devices = devices_from_env();
  config.priorities = number_from_env("SOFTGPU_PRIORITIES", 0, 1, 1) == 1;
  config.below_normal = number_from_env("CUDA_MPS_CLIENT_PRIORITY", 0, 1, 0) == 1;
  config.percentage = percentage_from_env();
  const char* pipes = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  config.apart = pipes != nullptr && *pipes != '\0' && access(pipes, F_OK) != 0;
  if (pipes != nullptr && *pipes != '\0' && !config.apart) config.mps = mps_in(pipes);
  config.mps_queues =
      config.apart ? 0 : static_cast<std::uint32_t>(number_from_env("SOFTGPU_MPS_QUEUES", 0, 1024, config.mps_queues));
  if (config.mps_queues != 0)
    config.work_queues = number_from_env("CUDA_DEVICE_MAX_CONNECTIONS", 1, 32, kQueuesUnderMps);
  config.work_queues = number_from_env("SOFTGPU_WORK_QUEUES", 0, 128, config.work_queues);
  config.warp_instruction_ns =
      number_from_env("SOFTGPU_WARP_INSTRUCTION_NS", 0, 1'000'000'000, kDefaultWarpInstructionNs);
  if (const char* file = std::getenv("SOFTGPU_COMPILE_UNTIL")) config.compile_until = file;
  config.memset_us = number_from_env("SOFTGPU_MEMSET_US", 0, 10'000'000, config.memset_us);
  const char* loading = std::getenv("CUDA_MODULE_LOADING");
  config.lazy_loading = loading != nullptr && std::strcmp(loading, "LAZY") == 0;
  config.graph_launch_waits = number_from_env("SOFTGPU_GRAPH_LAUNCH_WAITS", 0, 1, 0) == 1;
  config.channels = number_from_env("SOFTGPU_CHANNELS", 0, 1, 0) == 1;
  config.checkpoints = number_from_env("SOFTGPU_CHECKPOINTS", 0, 1, 1) == 1;
  config.strict_streams = number_from_env("SOFTGPU_STRICT_STREAMS", 0, 1, 0) == 1;
  config.strict_exit = number_from_env("SOFTGPU_STRICT_EXIT", 0, 1, 0) == 1;
  return config;
}

}  // namespace gpuctl::softgpu

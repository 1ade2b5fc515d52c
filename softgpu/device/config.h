// The settings of the software GPU, all from the environment (softgpu/README.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuctl::softgpu {

/// One device of the machine.
struct DeviceConfig {
  std::uint32_t sms = 8;   ///< SOFTGPU_SMS, 1 to 64; only the process that creates the table uses it
  std::string table_path;  ///< SOFTGPU_TABLE; default: one file per user on the machine's shared memory
  std::size_t memory_bytes = std::size_t{4} << 30;  ///< SOFTGPU_MEMORY_MIB: device memory of this process
  std::optional<std::size_t> shared_bytes;          ///< SOFTGPU_SHARED_MEMORY_MIB: of all processes together
};

struct Config {
  std::vector<DeviceConfig> devices;  ///< SOFTGPU_DEVICES of them, by their numbers on the machine
  bool priorities = true;             ///< SOFTGPU_PRIORITIES: this process's kernels are placed by priority
  bool below_normal = false;          ///< CUDA_MPS_CLIENT_PRIORITY=1: they go after those of normal clients
  double percentage = 100;            ///< CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, up to 100: of each device's SMs
  bool apart = false;                 ///< CUDA_MPS_PIPE_DIRECTORY names a directory that is not there: no MPS serves it
  std::uint64_t mps = 0;              ///< stands for the directory of that name, if an MPS runs there
  std::size_t work_queues = 0;   ///< hardware queues of the process (contexts/work_queue.h); 0: one for each stream
  std::uint32_t mps_queues = 0;  ///< SOFTGPU_MPS_QUEUES: of so many that all processes share; 0: they share none
  std::uint64_t warp_instruction_ns;  ///< SOFTGPU_WARP_INSTRUCTION_NS, see pacing.h
  std::string compile_until;          ///< SOFTGPU_COMPILE_UNTIL: compiling a PTX text lasts until this file exists
  std::uint64_t memset_us = 0;        ///< SOFTGPU_MEMSET_US: least duration of a memset, as on a busy GPU
  bool lazy_loading = false;          ///< CUDA_MODULE_LOADING=LAZY: a kernel's code is loaded at its first use
  bool graph_launch_waits = false;    ///< SOFTGPU_GRAPH_LAUNCH_WAITS: cuGraphLaunch returns when the graph has ended
  bool channels = false;              ///< SOFTGPU_CHANNELS: cuInit makes a channel group (api/channels.h)
  bool checkpoints = true;            ///< SOFTGPU_CHECKPOINTS: cuCheckpointProcess* work
  bool strict_streams = false;        ///< SOFTGPU_STRICT_STREAMS: abort() on calls for streams that are not there
  bool strict_exit = false;           ///< SOFTGPU_STRICT_EXIT: abort() on calls after the process began to exit
};

inline constexpr std::size_t kMostDevices = 8;

/// Reads the environment. A value that is not a number in range is ignored.
Config read_config();

/// Path of this user's table if SOFTGPU_TABLE is not set.
std::string default_table_path();

}  // namespace gpuctl::softgpu
